#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    halfpower_fuzz::application_trace(data);
});
