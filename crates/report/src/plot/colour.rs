//! A ramp of lightness for ordered curves, else colours distinct with common colour deficiencies;
//! all with enough contrast for text.

pub(crate) const LIGHT_PAGE: &str = "#fdfdfb";
pub(crate) const DARK_PAGE: &str = "#15171a";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pair {
    pub light: String,
    pub dark: String,
}

/// On a light page, on a dark page.
const CATEGORIES: [(&str, &str); 6] = [
    ("#2a4fb0", "#7398ff"),
    ("#d13616", "#e8843c"),
    ("#008371", "#7ff0ab"),
    ("#5c1c4a", "#d6b7fb"),
    ("#677223", "#f5b738"),
    ("#474959", "#a5a7ab"),
];

pub(crate) const MAX: usize = CATEGORIES.len();

const LIGHT_RAMP: [&str; 4] = ["#068466", "#0c54a0", "#471a79", "#2d022b"];
const DARK_RAMP: [&str; 4] = ["#8a72e7", "#55a5f3", "#4edcbc", "#f8f3a3"];

pub(crate) fn ramp(share: f64) -> Pair {
    Pair { light: along(&LIGHT_RAMP, share), dark: along(&DARK_RAMP, share) }
}

pub(crate) fn of_curve(place: usize, count: usize, ordered: bool) -> Pair {
    if ordered && count > 2 {
        return ramp(place as f64 / (count - 1) as f64);
    }
    let (light, dark) = CATEGORIES[place % CATEGORIES.len()];
    Pair { light: light.into(), dark: dark.into() }
}

fn along(stops: &[&str], share: f64) -> String {
    let place = share.clamp(0.0, 1.0) * (stops.len() - 1) as f64;
    let first = (place.floor() as usize).min(stops.len() - 2);
    let (a, b) = (oklab(linear(stops[first])), oklab(linear(stops[first + 1])));
    let share = place - first as f64;
    hex(from_oklab([0, 1, 2].map(|i| a[i] + share * (b[i] - a[i]))))
}

/// Converts sRGB as in IEC 61966-2-1.
fn linear(hex: &str) -> [f64; 3] {
    [1, 3, 5].map(|at| {
        let value =
            f64::from(u8::from_str_radix(hex.get(at..at + 2).unwrap_or("00"), 16).unwrap_or(0))
                / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    })
}

fn hex(linear: [f64; 3]) -> String {
    let byte = |value: f64| {
        let value = value.clamp(0.0, 1.0);
        let value = if value <= 0.003_130_8 {
            value * 12.92
        } else {
            1.055 * value.powf(1.0 / 2.4) - 0.055
        };
        (value * 255.0).round() as u8
    };
    format!("#{:02x}{:02x}{:02x}", byte(linear[0]), byte(linear[1]), byte(linear[2]))
}

/// Bjorn Ottosson, "A perceptual color space for image processing", 2020.
fn oklab([r, g, b]: [f64; 3]) -> [f64; 3] {
    let l = (0.412_221_470_8 * r + 0.536_332_536_3 * g + 0.051_445_992_9 * b).cbrt();
    let m = (0.211_903_498_2 * r + 0.680_699_545_1 * g + 0.107_396_956_6 * b).cbrt();
    let s = (0.088_302_461_9 * r + 0.281_718_837_6 * g + 0.629_978_700_5 * b).cbrt();
    [
        0.210_454_255_3 * l + 0.793_617_785_0 * m - 0.004_072_046_8 * s,
        1.977_998_495_1 * l - 2.428_592_205_0 * m + 0.450_593_709_9 * s,
        0.025_904_037_1 * l + 0.782_771_766_2 * m - 0.808_675_766_0 * s,
    ]
}

fn from_oklab([lightness, a, b]: [f64; 3]) -> [f64; 3] {
    let l = (lightness + 0.396_337_777_4 * a + 0.215_803_757_3 * b).powi(3);
    let m = (lightness - 0.105_561_345_8 * a - 0.063_854_172_8 * b).powi(3);
    let s = (lightness - 0.089_484_177_5 * a - 1.291_485_548_0 * b).powi(3);
    [
        4.076_741_662_1 * l - 3.307_711_591_3 * m + 0.230_969_929_2 * s,
        -1.268_438_004_6 * l + 2.609_757_401_1 * m - 0.341_319_396_5 * s,
        -0.004_196_086_3 * l - 0.703_418_614_7 * m + 1.707_614_701_0 * s,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As in WCAG 2.1.
    fn contrast(a: &str, b: &str) -> f64 {
        let luminance = |hex: &str| {
            let [r, g, b] = linear(hex);
            0.2126 * r + 0.7152 * g + 0.0722 * b
        };
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    /// Linear sRGB as seen by dichromats: protan, deutan and tritan at full strength (Machado,
    /// Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision
    /// Deficiency", 2009).
    const DEFICIENCIES: [[[f64; 3]; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ],
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ],
    ];

    fn distance(a: &str, b: &str, sight: &[[f64; 3]; 3]) -> f64 {
        let seen =
            |hex: &str| {
                let rgb = linear(hex);
                oklab(sight.map(|row| {
                    (row[0] * rgb[0] + row[1] * rgb[1] + row[2] * rgb[2]).clamp(0.0, 1.0)
                }))
            };
        let (a, b) = (seen(a), seen(b));
        (0..3).map(|i| (a[i] - b[i]).powi(2)).sum::<f64>().sqrt()
    }

    fn colours(count: usize, ordered: bool) -> Vec<Pair> {
        (0..count).map(|place| of_curve(place, count, ordered)).collect()
    }

    #[test]
    fn every_colour_can_be_read_as_text() {
        for pair in colours(6, false).into_iter().chain(colours(12, true)) {
            assert!(
                contrast(&pair.light, LIGHT_PAGE) >= 4.4,
                "{} on light: {:.2}",
                pair.light,
                contrast(&pair.light, LIGHT_PAGE)
            );
            assert!(
                contrast(&pair.dark, DARK_PAGE) >= 4.5,
                "{} on dark: {:.2}",
                pair.dark,
                contrast(&pair.dark, DARK_PAGE)
            );
        }
    }

    #[test]
    fn the_first_colours_differ_for_everybody() {
        for (count, ordered, min) in [(4, false, 0.07), (6, false, 0.05), (5, true, 0.055)] {
            let colours = colours(count, ordered);
            for sight in &DEFICIENCIES {
                for (place, a) in colours.iter().enumerate() {
                    for b in &colours[..place] {
                        for (a, b) in [(&a.light, &b.light), (&a.dark, &b.dark)] {
                            assert!(
                                distance(a, b, sight) >= min,
                                "{a} and {b} of {count}: {:.3}",
                                distance(a, b, sight)
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn conversions_round_trip() {
        for colour in ["#000000", "#ffffff", "#c24a00", "#0a5fb4"] {
            assert_eq!(hex(from_oklab(oklab(linear(colour)))), colour);
        }
    }
}
