//! Trace events, whatever their layout in the kernel.

use super::RecordError;
use super::calls::{CALLS, Call, OpenCall, RenameCall};
use super::format::{Field, Format};
use super::given_names::{NamePlace, Which};
use crate::linux::trace_instance::TraceInstance;
use machine::Nanos;

#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    /// On the monotonic clock.
    pub(super) at: Nanos,
    pub(super) thread: i32,
    pub(super) what: What,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum What {
    Enter(Call, [u64; 6]),
    Leave(Call, i64),
    /// The flags are those of clone(2).
    Started {
        child: i32,
        flags: u64,
    },
    Ended,
    Executed,
    Fault {
        device: u32,
        inode: u64,
        page: u64,
    },
    Unlinked {
        device: u32,
        inode: u64,
        result: i32,
    },
    Block(Step, Sectors),
    RingSubmit {
        request: u64,
        opcode: u8,
    },
    RingFile {
        request: u64,
        descriptor: i32,
    },
    RingDone {
        request: u64,
        result: i32,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Queued,
    Completed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sectors {
    pub(super) device: (u32, u32),
    pub(super) first: u64,
    pub(super) count: u64,
    /// The first letters of the kernel's description: `R`, `WS`, `FF`, `FWFSM`.
    pub(super) letters: [u8; 8],
}

type Arguments = Vec<Field>;

enum Layout {
    Enter(Call, Arguments),
    Leave(Call, Field),
    Started(Field, Field),
    Ended,
    Executed,
    Fault(Field, Field, Field),
    Unlinked(Field, Field, Field),
    Block(Step, [Field; 4]),
    RingSubmit(Field, Field),
    RingFile(Field, Field),
    RingDone(Field, Field),
}

#[derive(Default)]
pub(super) struct Decoder(Vec<Option<Layout>>);

impl Decoder {
    fn add(&mut self, id: u16, layout: Layout) {
        let index = usize::from(id);
        if self.0.len() <= index {
            self.0.resize_with(index + 1, || None);
        }
        self.0[index] = Some(layout);
    }

    /// Names for `set_event`, and the places of file names.
    pub(super) fn calls(
        &mut self,
        instance: &TraceInstance,
    ) -> Result<(Vec<String>, Vec<NamePlace>), RecordError> {
        let (mut names, mut places) = (Vec::new(), Vec::new());
        for (name, call) in CALLS {
            let event = |edge: &str| format!("syscalls/sys_{edge}_{name}");
            let (enter, leave) = (event("enter"), event("exit"));
            let formats = Format::read(instance, &enter).zip(Format::read(instance, &leave));
            let Some((enter_format, leave_format)) = formats else { continue };
            let arguments = enter_format.arguments();
            let paths = match call {
                Call::Open(OpenCall { path, .. }) => [path, None],
                Call::Rename(RenameCall { from, to, .. }) => [Some(from), Some(to)],
                _ => [None; 2],
            };
            for (which, path) in [Which::First, Which::Second].into_iter().zip(paths) {
                if let Some(field) = path.and_then(|path| arguments.get(path)) {
                    let (event, offset) = (enter_format.id, field.offset() as u16);
                    places.push(NamePlace { event, offset, which });
                }
            }
            self.add(enter_format.id, Layout::Enter(call, arguments));
            self.add(leave_format.id, Layout::Leave(call, leave_format.field("ret")?));
            names.extend([enter, leave]);
        }
        Ok((names, places))
    }

    pub(super) fn other(
        &mut self,
        instance: &TraceInstance,
        event: &str,
    ) -> Result<bool, RecordError> {
        let Some(format) = Format::read(instance, event) else { return Ok(false) };
        let block = |step| {
            let [device, first, count] =
                ["dev", "sector", "nr_sector"].map(|name| format.field(name));
            Ok::<_, RecordError>(Layout::Block(
                step,
                [device?, first?, count?, format.field("rwbs")?],
            ))
        };
        let layout = match event {
            "task/task_newtask" => {
                Layout::Started(format.field("pid")?, format.field("clone_flags")?)
            }
            "sched/sched_process_exit" => Layout::Ended,
            "sched/sched_process_exec" => Layout::Executed,
            "filemap/mm_filemap_fault" => Layout::Fault(
                format.field("s_dev")?,
                format.field("i_ino")?,
                format.field("index")?,
            ),
            "ext4/ext4_unlink_exit" => {
                Layout::Unlinked(format.field("dev")?, format.field("ino")?, format.field("ret")?)
            }
            "block/block_bio_queue" => block(Step::Queued)?,
            "block/block_rq_complete" => block(Step::Completed)?,
            "io_uring/io_uring_submit_req" => {
                Layout::RingSubmit(format.field("req")?, format.field("opcode")?)
            }
            "io_uring/io_uring_file_get" => {
                Layout::RingFile(format.field("req")?, format.field("fd")?)
            }
            "io_uring/io_uring_complete" => {
                Layout::RingDone(format.field("req")?, format.field("res")?)
            }
            _ => return Ok(false),
        };
        self.add(format.id, layout);
        Ok(true)
    }

    pub(super) fn decode(&self, at: Nanos, event: &[u8]) -> Option<Seen> {
        // Every event begins with its number, flags, and the thread.
        let id = u16::from_le_bytes(event.get(..2)?.try_into().ok()?);
        let thread = i32::from_le_bytes(event.get(4..8)?.try_into().ok()?);
        let what = match self.0.get(usize::from(id))?.as_ref()? {
            Layout::Enter(call, fields) => {
                let mut arguments = [0; 6];
                for (argument, field) in arguments.iter_mut().zip(fields) {
                    *argument = field.of(event);
                }
                What::Enter(*call, arguments)
            }
            Layout::Leave(call, result) => What::Leave(*call, result.of(event) as i64),
            Layout::Started(child, flags) => {
                What::Started { child: child.of(event) as i32, flags: flags.of(event) }
            }
            Layout::Ended => What::Ended,
            Layout::Executed => What::Executed,
            Layout::Fault(device, inode, page) => What::Fault {
                device: device.of(event) as u32,
                inode: inode.of(event),
                page: page.of(event),
            },
            Layout::Unlinked(device, inode, result) => What::Unlinked {
                device: device.of(event) as u32,
                inode: inode.of(event),
                result: result.of(event) as i32,
            },
            Layout::Block(step, [device, first, count, letters]) => {
                let device = device.of(event) as u32;
                let mut first_letters = [0; 8];
                for (letter, byte) in first_letters.iter_mut().zip(letters.bytes(event)) {
                    *letter = *byte;
                }
                let sectors = Sectors {
                    // The kernel's own form of a device number.
                    device: (device >> 20, device & 0xf_ffff),
                    first: first.of(event),
                    count: count.of(event),
                    letters: first_letters,
                };
                What::Block(*step, sectors)
            }
            Layout::RingSubmit(request, opcode) => {
                What::RingSubmit { request: request.of(event), opcode: opcode.of(event) as u8 }
            }
            Layout::RingFile(request, descriptor) => What::RingFile {
                request: request.of(event),
                descriptor: descriptor.of(event) as i32,
            },
            Layout::RingDone(request, result) => {
                What::RingDone { request: request.of(event), result: result.of(event) as i32 }
            }
        };
        Some(Seen { at, thread, what })
    }
}
