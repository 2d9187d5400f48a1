//! The clients of `-+m`, all on this computer.

use super::Options;
use super::options::MAX_CHILDREN;
use crate::parse::{refuse, shortened};
use files::Input;
use machine::{Error, Result};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

const CLIENTS: Input = Input::new("a list of clients", 1 << 20);

/// A line of the list, for one process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Client {
    pub host: String,
    pub directory: PathBuf,
    /// `None`: the default name.
    pub file: Option<PathBuf>,
}

impl Client {
    fn parse(list: &Path, number: usize, line: &str) -> Result<Client> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        match fields.as_slice() {
            [host, directory, _] => {
                Ok(Client { host: (*host).into(), directory: directory.into(), file: None })
            }
            [host, directory, _, file] => Ok(Client {
                host: (*host).into(),
                directory: directory.into(),
                file: Some(file.into()),
            }),
            fields => refuse(
                format!("-+m {}, line {number}: {}", list.display(), shortened(line)),
                format!("it has {} fields", fields.len()),
                "write client, working directory and path of iozone, and perhaps a test file",
            ),
        }
    }

    /// For a child without a name in `-F`; `base` is that of `-f`.
    fn test_file(&self, child: usize, base: &Path) -> PathBuf {
        let own = || base.as_os_str().to_string_lossy().into_owned() + &format!(".DUMMY.{child}");
        self.directory.join(self.file.clone().unwrap_or_else(|| own().into()))
    }

    fn is_here(&self, name: &str) -> bool {
        let host = self.host.trim_end_matches('.');
        let loopback = host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        let short = |name: &str| name.split('.').next().unwrap_or(name).to_ascii_lowercase();
        // Two full names also differ if their domains do.
        let same = if host.contains('.') && name.contains('.') {
            host.eq_ignore_ascii_case(name)
        } else {
            short(host) == short(name)
        };
        loopback || short(host) == "localhost" || (host.parse::<IpAddr>().is_err() && same)
    }
}

fn read(list: &Path) -> Result<Vec<Client>> {
    let failed = |why: String| {
        Error::refused(format!("-+m {}", list.display()), why, "name a list of clients")
    };
    let text = CLIENTS.text(list).map_err(|error| failed(error.to_string()))?;
    let lines = (1..)
        .zip(text.lines())
        .filter(|(_, line)| !(line.starts_with('#') || line.trim().is_empty()));
    let clients: Vec<Client> =
        lines.map(|(number, line)| Client::parse(list, number, line)).collect::<Result<_>>()?;
    if clients.is_empty() || clients.len() > MAX_CHILDREN as usize {
        return Err(failed(format!("it has {} clients", clients.len())));
    }
    Ok(clients)
}

impl Options {
    /// Loads the clients of `-+m`; fewer than processes are an error.
    pub fn with_clients(mut self) -> Result<Options> {
        let Some(list) = &self.client_list else { return Ok(self) };
        self.clients = read(list)?;
        let max = self.max_children();
        if max > self.clients.len() {
            return refuse(
                format!("-t {max}"),
                format!("{} has {} clients", list.display(), self.clients.len()),
                "start at most as many processes, or name a client on more lines",
            );
        }
        Ok(self)
    }

    pub(super) fn check_clients(&self, name: &str) -> Result<()> {
        for client in &self.clients[..self.max_children().min(self.clients.len())] {
            if !client.is_here(name) {
                return refuse(
                    format!("the client {} of -+m", shortened(&client.host)),
                    format!("halfpower runs on one computer, and this is {name}"),
                    "name this computer or localhost, or start halfpower iozone on each computer without -+m",
                );
            }
            if !client.directory.is_dir() {
                return refuse(
                    client.directory.display().to_string(),
                    format!(
                        "the client {} has no such directory to work in",
                        shortened(&client.host)
                    ),
                    "make it, or name another",
                );
            }
        }
        Ok(())
    }

    pub(super) fn client_files(&self) -> Vec<PathBuf> {
        let base = match &self.file {
            Some(path) if path.is_dir() => path.join("iozone"),
            Some(path) => path.clone(),
            None => "iozone".into(),
        };
        let used = self.clients.iter().take(self.max_children()).enumerate();
        let file = |(child, client): (usize, &Client)| match self.process_files.get(child) {
            Some(file) => client.directory.join(file),
            None => client.test_file(child, &base),
        };
        used.map(file).collect()
    }
}
