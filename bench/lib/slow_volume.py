#!/usr/bin/env python3
"""A FUSE file system with one file, whose reads and writes each take a given time, independent of how many are outstanding: a remote
volume. Mounted as it is, it is a file system in user space; with the name of a network file system (sshfs) a network volume; under a loop
device with direct I/O, a device of high parallelism. Run as root: slow_volume.py DIRECTORY MIB MICROSECONDS [TYPE]. Ends when unmounted."""

import ctypes
import errno
import mmap
import os
import stat
import struct
import sys
import threading
import time

LOOKUP, GETATTR, SETATTR, OPEN, READ, WRITE, STATFS, RELEASE, FSYNC, FLUSH, INIT = 1, 3, 4, 14, 15, 16, 17, 18, 20, 25, 26
OPENDIR, READDIR, RELEASEDIR, ACCESS, CREATE, UNLINK, FORGET, BATCH_FORGET, INTERRUPT = 27, 28, 29, 34, 35, 10, 2, 42, 36
FALLOCATE, RENAME2, RENAME = 43, 45, 12
IN, OUT = struct.Struct("<IIQQIIIHH"), struct.Struct("<IiQ")
# linux/fuse.h: FUSE_ASYNC_READ, FUSE_BIG_WRITES, FUSE_PARALLEL_DIROPS, FUSE_ASYNC_DIO, FUSE_MAX_PAGES.
FLAGS = 1 << 0 | 1 << 5 | 1 << 15 | 1 << 18 | 1 << 22
MOST = 1 << 20
ROOT = 1


class Volume:
    def __init__(self, fuse, size, seconds):
        self.fuse, self.size, self.seconds = fuse, size, seconds
        # By inode: name, bytes in memory, length.
        self.names, self.data, self.lengths, self.last = {}, {}, {}, ROOT
        self.lock = threading.Lock()
        self.make("disk", size)

    def make(self, name, length):
        with self.lock:
            self.last += 1
            self.names[name], self.lengths[self.last] = self.last, length
            self.data[self.last] = mmap.mmap(-1, self.size)
            return self.last

    def attributes(self, node):
        directory = node == ROOT
        mode = stat.S_IFDIR | 0o777 if directory else stat.S_IFREG | 0o666
        length = 0 if directory else self.lengths[node]
        return struct.pack("<6Q10I", node, length, length // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)

    def entry(self, node):
        return struct.pack("<4Q2I", node, 0, 3600, 3600, 0, 0) + self.attributes(node)

    def attr(self, node):
        return struct.pack("<Q2I", 3600, 0, 0) + self.attributes(node)

    def answer(self, code, node, body):
        """The bytes of the reply, or a negative error number."""
        if code == INIT:
            return struct.pack("<4I2HIIHH8I", 7, 31, 128 << 10, FLAGS, 64, 48, MOST, 1, MOST // 4096, 0, *[0] * 8)[:64]
        if code in (LOOKUP, UNLINK):
            name = body.rstrip(b"\0").decode()
            found = self.names.get(name)
            if found is None:
                return -errno.ENOENT
            if code == LOOKUP:
                return self.entry(found)
            del self.names[name]
            return b""
        if code == GETATTR:
            return self.attr(node)
        if code == SETATTR:
            valid, _, _, length = struct.unpack_from("<IIQQ", body)
            if valid & 1 << 3:
                if length > self.size:
                    return -errno.ENOSPC
                self.lengths[node] = length
            return self.attr(node)
        if code in (OPEN, OPENDIR):
            return struct.pack("<QII", node, 0, 0)
        if code == CREATE:
            made = self.make(body[16:].rstrip(b"\0").decode(), 0)
            return self.entry(made) + struct.pack("<QII", made, 0, 0)
        if code in (RENAME, RENAME2):
            names = body[8 if code == RENAME else 16 :].split(b"\0")
            self.names[names[1].decode()] = self.names.pop(names[0].decode())
            return b""
        if code == READ:
            _, offset, length = struct.unpack_from("<QQI", body)
            time.sleep(self.seconds)
            return self.data[node][offset : min(offset + length, self.lengths[node])]
        if code == WRITE:
            _, offset, length = struct.unpack_from("<QQI", body)
            time.sleep(self.seconds)
            if offset + length > self.size:
                return -errno.ENOSPC
            self.data[node][offset : offset + length] = body[40 : 40 + length]
            self.lengths[node] = max(self.lengths[node], offset + length)
            return struct.pack("<II", length, 0)
        if code == STATFS:
            blocks = self.size * 4 // 4096
            return struct.pack("<5Q4I24x", blocks, blocks, blocks, 1000, 1000, 4096, 255, 4096, 0)
        if code == FALLOCATE:
            _, offset, length = struct.unpack_from("<QQQ", body)
            self.lengths[node] = max(self.lengths[node], offset + length)
            return b"" if offset + length <= self.size else -errno.ENOSPC
        if code in (FSYNC, FLUSH, RELEASE, RELEASEDIR, ACCESS, READDIR):
            return b""
        return -errno.ENOSYS

    def serve(self):
        while True:
            try:
                request = os.read(self.fuse, MOST + 4096)
            except OSError as error:
                if error.errno in (errno.EINTR, errno.ENOENT, errno.EAGAIN):
                    continue
                # Unmounted.
                os._exit(0)
            _, code, unique, node, *_ = IN.unpack_from(request)
            if code in (FORGET, BATCH_FORGET, INTERRUPT):
                continue
            try:
                reply = self.answer(code, node, request[IN.size :])
            except (KeyError, struct.error):
                reply = -errno.EIO
            error, reply = (reply, b"") if isinstance(reply, int) else (0, reply)
            try:
                os.write(self.fuse, OUT.pack(OUT.size + len(reply), error, unique) + reply)
            except OSError:
                pass


def main():
    directory, size, seconds = sys.argv[1], int(sys.argv[2]) << 20, float(sys.argv[3]) / 1e6
    kind = f"fuse.{sys.argv[4]}" if len(sys.argv) > 4 else "fuse"
    fuse = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={fuse},rootmode=40000,user_id=0,group_id=0,allow_other,max_read={MOST}"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"far:/volume", directory.encode(), kind.encode(), 0, options.encode()):
        sys.exit(os.strerror(ctypes.get_errno()))
    volume = Volume(fuse, size, seconds)
    for _ in range(63):
        threading.Thread(target=volume.serve, daemon=True).start()
    volume.serve()


if __name__ == "__main__":
    main()
