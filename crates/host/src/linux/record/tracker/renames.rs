//! Programs often write a new version under another name first.

use super::{Pending, Tracker};
use crate::linux::record::calls::RenameCall;
use crate::linux::record::given_names::Which;
use crate::linux::record::seen::Seen;
use apptrace::{Access, Event, Index, Interface, Renamed, Result};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

impl<W: Write> Tracker<W> {
    pub(super) fn renamed(
        &mut self,
        seen: &Seen,
        pending: &Pending,
        how: RenameCall,
    ) -> Result<()> {
        let [from_directory, to_directory] = how.directories();
        let from = self.full_name(seen, pending, Which::First, from_directory);
        let to = self.full_name(seen, pending, Which::Second, to_directory);
        let (Some(from), Some(to)) = (from.map(resolved), to.map(resolved)) else { return Ok(()) };
        let flags = how.flags.map_or(0, |index| pending.arguments[index] as u32);
        let moved = self.take_paths(&from);
        let replaced = self.take_paths(&to);
        if flags & libc::RENAME_EXCHANGE != 0 {
            self.give_names(replaced, &to, &from)?;
        } else {
            for (_, file) in replaced {
                let unlinked = super::Traced {
                    thread: Some(seen.thread),
                    result: Some(0),
                    ..super::Traced::new(seen.at, file, Access::Unlink, Interface::SystemCall)
                };
                self.add(unlinked)?;
            }
        }
        self.give_names(moved, &from, &to)
    }

    fn take_paths(&mut self, at: &Path) -> Vec<(PathBuf, Index)> {
        let below = self.paths.range(at.to_owned()..).take_while(|(path, _)| path.starts_with(at));
        let below: Vec<(PathBuf, Index)> =
            below.map(|(path, file)| (path.clone(), *file)).collect();
        for (path, _) in &below {
            self.paths.remove(path);
        }
        below
    }

    fn give_names(&mut self, files: Vec<(PathBuf, Index)>, from: &Path, to: &Path) -> Result<()> {
        for (path, file) in files {
            let Ok(rest) = path.strip_prefix(from) else { continue };
            // An empty rest would end the name with a slash.
            let path = if rest.as_os_str().is_empty() { to.to_owned() } else { to.join(rest) };
            let name = path.to_string_lossy().into_owned();
            let (device, inode) = self.places[file as usize];
            self.identities.insert((device, inode, name.clone()), file);
            if let Some(directory) = self.directories.get_mut(&file) {
                directory.clone_from(&path);
            }
            self.paths.insert(path, file);
            let name = self.names.show(name);
            self.writer.event(&Event::Renamed(Renamed { file, name }))?;
        }
        Ok(())
    }
}

fn resolved(path: PathBuf) -> PathBuf {
    let named = path.parent().zip(path.file_name());
    let named = named.and_then(|(above, name)| Some(fs::canonicalize(above).ok()?.join(name)));
    named.unwrap_or(path)
}
