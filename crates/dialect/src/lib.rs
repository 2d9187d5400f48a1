//! Other tools' languages in and out: PostMark, IOzone, SQLIO, diskspd, fio.

pub mod postmark;
