use crate::knobs::Scene;
use crate::plan::{Change, Plan, Trial};
use crate::tuning::changed;
use machine::with_settings;

/// The target as named on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Several form a stripe.
    pub places: Vec<String>,
    pub options: Vec<String>,
}

impl Target {
    pub fn name(&self) -> String {
        self.places.join(", ")
    }
}

fn quoted(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| "''".into(), std::borrow::Cow::into_owned)
}

pub(crate) fn prove(
    plan: &Plan,
    scene: &Scene<'_>,
    target: &Target,
    chosen: &[&Trial],
) -> Vec<String> {
    let of_machine = || chosen.iter().filter(|trial| matches!(trial.change, Change::Machine(_)));
    let commands = |command: fn(&Trial) -> Option<&String>| -> String {
        of_machine().filter_map(|trial| command(trial).cloned()).collect::<Vec<_>>().join(" && ")
    };
    let a_setup = commands(|trial| trial.to.put_back.as_ref());
    let b_setup = commands(|trial| trial.to.command.as_ref());
    // A setting without a command is part of the target's name: a simulated machine.
    let in_name: String = of_machine()
        .filter(|trial| trial.to.command.is_none() && trial.to.option.is_none())
        .map(|trial| format!(",{}={}", trial.knob, trial.to.value))
        .collect();
    let options: String =
        of_machine().filter_map(|trial| Some(format!(" {}", trial.to.option.as_ref()?))).collect();
    if let Some(whole) = &plan.whole {
        let arm = |added: &str| match &whole.arm_options {
            None => quoted(&with_settings(&target.places.join(" "), added)),
            Some(options) => {
                let places = target.places.iter().map(|place| quoted(&with_settings(place, added)));
                let words = target.options.iter().map(|word| quoted(word));
                let mut all: Vec<String> = places.chain(words).collect();
                all.extend((!options.is_empty()).then(|| options.clone()));
                quoted(&all.join(" "))
            }
        };
        let mut words = vec![
            format!("halfpower compare {}", whole.options),
            format!("--a {}", arm("")),
            format!("--b {}", arm(&in_name)),
        ];
        for (option, setup) in [("--a-setup", &a_setup), ("--b-setup", &b_setup)] {
            if !setup.is_empty() {
                words.push(format!("{option} {}", quoted(setup)));
            }
        }
        let back = if a_setup.is_empty() { String::new() } else { format!("; {a_setup}") };
        return vec![format!("{}{back}", words.join(" "))];
    }
    let mut commands = Vec::new();
    for (number, workload) in plan.questions.iter().enumerate() {
        if !chosen.iter().any(|trial| trial.questions.contains(&number)) {
            continue;
        }
        let arm = |added: &str, options: &str, workload: &workload::Workload| {
            let places: Vec<String> =
                target.places.iter().map(|place| quoted(&with_settings(place, added))).collect();
            quoted(&format!("{} {}{options}", places.join(" "), workload.options()))
        };
        let mut words = vec![
            "halfpower compare".to_owned(),
            format!("--a {}", arm("", "", workload)),
            format!("--b {}", arm(&in_name, &options, &changed(workload, chosen, scene))),
        ];
        for (option, setup) in [("--a-setup", &a_setup), ("--b-setup", &b_setup)] {
            if !setup.is_empty() {
                words.push(format!("{option} {}", quoted(setup)));
            }
        }
        words.extend(target.options.iter().map(|word| quoted(word)));
        if !a_setup.is_empty() {
            // The order of the arms is random, so either may have run last.
            words.push(format!("; {a_setup}"));
        }
        commands.push(words.join(" ").replace(" ; ", "; "));
    }
    commands
}
