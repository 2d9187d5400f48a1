//! Other tools' languages in and out: PostMark, IOzone, SQLIO, diskspd, fio.

pub mod metadata;
pub mod postmark;
