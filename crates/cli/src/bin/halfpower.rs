//! The `halfpower` program.

fn main() -> std::process::ExitCode {
    cli::main()
}
