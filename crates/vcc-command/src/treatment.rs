//! The options that say how a port's connections are treated: one for each key of a policy that the
//! port knows.

use clap::builder::{PossibleValuesParser, TypedValueParser, ValueParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command, FromArgMatches};
use vcc_engine::{Mode, Params};
use vcc_policy::{
    KEYS, Key, Kind, MAX_FLOWS, ORDER, Order, PortSelector, Scope, Settings, Surface, TunnelKind,
    Tunnels, Value, dashed,
};
use vcc_port::AttachOptions;

/// The options together; it is an error if they contradict each other.
pub struct Treatment<const BUFFERS: bool> {
    options: AttachOptions,
    warnings: Vec<String>,
}

/// For a port in the kernel.
pub type DeviceTreatment = Treatment<false>;
/// For a port with a buffer.
pub type BufferTreatment = Treatment<true>;

impl<const BUFFERS: bool> Treatment<BUFFERS> {
    pub fn options(&self) -> AttachOptions {
        self.options.clone()
    }

    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    pub fn mode(&self) -> Mode {
        self.options.params.mode().expect("set by its name")
    }
}

const MAX_FLOWS_OPTION: &str = "max_flows";
const INSIDE_OPTION: &str = "inside";
const ORDER_OPTION: &str = "order";
/// The option that names a policy.
const POLICY: &str = "policy";

fn keys(buffers: bool) -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(move |key| match key.scope() {
        Scope::Everywhere => true,
        Scope::Policies => false,
        Scope::Buffers => buffers,
    })
}

/// The options of a port in the kernel, which all of its devices have together.
pub fn options_of_port() -> impl Iterator<Item = &'static str> {
    keys(false).map(|key| key.name).chain([MAX_FLOWS_OPTION, INSIDE_OPTION])
}

fn option(key: &'static Key) -> Arg {
    let default = key.default().map(|number| key.kind.show(number)).unwrap_or_default();
    let help = format!("{} [default: {default}]", key.help().trim_end_matches('.'));
    let arg = Arg::new(key.name).long(dashed(key.name)).help(help).value_parser(parser(key));
    let arg = arg.value_name(key.kind.placeholder());
    match key.kind {
        // Else a device behind it would be taken for the value.
        Kind::Flag => arg.num_args(0..=1).require_equals(true).default_missing_value("true"),
        _ => arg,
    }
}

fn parser(key: &'static Key) -> ValueParser {
    match key.kind {
        Kind::Name { values, .. } => {
            let names = values().into_iter().map(|(name, _)| name);
            let parse = |name: String| key.kind.parse(&name);
            ValueParser::new(PossibleValuesParser::new(names).try_map(parse))
        }
        _ => ValueParser::new(|text: &str| key.kind.parse(text)),
    }
}

fn max_flows() -> Arg {
    let default = PortSelector::DEFAULT_MAX_FLOWS;
    Arg::new(MAX_FLOWS_OPTION)
        .long(dashed(MAX_FLOWS_OPTION))
        .value_name(MAX_FLOWS.placeholder())
        .help(format!("The connections that a port tracks at a time [default: {default}]"))
        .value_parser(ValueParser::new(|text: &str| MAX_FLOWS.parse(text)))
}

/// Of ports in the kernel only.
fn inside() -> Arg {
    let names = TunnelKind::ALL.map(|kind| kind.name);
    let parse = |name: String| TunnelKind::named(&name).ok_or("not a kind of tunnel");
    Arg::new(INSIDE_OPTION)
        .long(INSIDE_OPTION)
        .value_name("KIND")
        .help("The guest's tunnels whose inner connections are translated as well [default: none]")
        .action(ArgAction::Append)
        .value_delimiter(',')
        .value_parser(ValueParser::new(PossibleValuesParser::new(names).try_map(parse)))
}

fn order() -> Arg {
    let Kind::Name { values, .. } = ORDER else { unreachable!("it has words") };
    let names = values().into_iter().map(|(name, _)| name);
    let parse = |name: String| ORDER.parse(&name);
    Arg::new(ORDER_OPTION)
        .long(ORDER_OPTION)
        .value_name(ORDER.placeholder())
        .help("Whether vcc runs before or after other programs at the devices [default: last]")
        .value_parser(ValueParser::new(PossibleValuesParser::new(names).try_map(parse)))
}

/// The options that are given.
fn given(matches: &ArgMatches, buffers: bool) -> impl Iterator<Item = (&'static Key, u32)> {
    keys(buffers).filter_map(|key| Some((key, *matches.get_one::<u32>(key.name)?)))
}

fn tunnels(matches: &ArgMatches) -> Option<Tunnels> {
    Some(matches.get_many::<TunnelKind>(INSIDE_OPTION)?.copied().collect())
}

/// What is not an error, but perhaps not meant.
fn warnings(settings: &Settings) -> Vec<String> {
    settings.warnings(Surface::CommandLine).map(|complaint| complaint.message).collect()
}

/// An error if the options contradict each other.
fn agreed(settings: &Settings) -> Result<(), String> {
    let complaint = settings.complaints(Surface::CommandLine, None).into_iter().next();
    complaint.map_or(Ok(()), |complaint| Err(complaint.message))
}

fn treatment<const BUFFERS: bool>(matches: &ArgMatches) -> Result<Treatment<BUFFERS>, String> {
    let mut settings = Settings::default();
    given(matches, BUFFERS).for_each(|(key, number)| settings.set(key, Value::Number(number)));
    agreed(&settings)?;
    let tunnels = (!BUFFERS).then(|| tunnels(matches)).flatten().unwrap_or(Tunnels::NONE);
    let max_flows = matches.get_one::<u32>(MAX_FLOWS_OPTION).copied();
    let order = match BUFFERS {
        true => None,
        false => matches.get_one::<u32>(ORDER_OPTION).copied().and_then(Order::from_number),
    };
    let options = AttachOptions {
        params: settings.treatment().params,
        max_flows: max_flows.unwrap_or(PortSelector::DEFAULT_MAX_FLOWS),
        inside: tunnels,
        order: order.unwrap_or_default(),
    };
    Ok(Treatment { options, warnings: warnings(&settings) })
}

/// The options that change of the treatment of a port in the kernel; the others stay.
pub struct TreatmentChange {
    given: Vec<(&'static Key, u32)>,
    pub inside: Option<Tunnels>,
}

impl TreatmentChange {
    /// The parameters with these changes, and warnings. An error if they contradict those that stay.
    pub fn apply_to(&self, before: Params) -> Result<(Params, Vec<String>), String> {
        let is_given = |name: &str| self.given.iter().any(|(key, _)| key.name == name);
        let kept = [("underlay", before.underlay().is_none()), ("mode", before.mode().is_none())];
        if let Some((name, _)) = kept.iter().find(|(name, is_new)| *is_new && !is_given(name)) {
            // Whether options agree with it cannot be said.
            return Err(format!(
                "the port's {name} is one that this version of vcc does not know: add --{name} NAME"
            ));
        }
        let mut settings = Settings::from_params(before);
        let changes = self.given.iter();
        changes.for_each(|(key, number)| settings.set(key, Value::Number(*number)));
        agreed(&settings)?;
        Ok((settings.treatment().params, warnings(&settings)))
    }
}

impl FromArgMatches for TreatmentChange {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self { given: given(matches, false).collect(), inside: tunnels(matches) })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl clap::Args for TreatmentChange {
    fn augment_args(command: Command) -> Command {
        let changes = ArgGroup::new("change").required(true).multiple(true);
        let unchanged = |arg: Arg| {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            let help = help.split(" [default: ").next().unwrap_or_default().to_owned();
            arg.help(help).group("change")
        };
        let options = keys(false).map(option).chain([inside()]).map(unchanged);
        command.group(changes).args(options)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<const BUFFERS: bool> FromArgMatches for Treatment<BUFFERS> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let refused = |why| clap::Error::raw(ErrorKind::ArgumentConflict, why);
        treatment(matches).map_err(refused)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<const BUFFERS: bool> clap::Args for Treatment<BUFFERS> {
    fn augment_args(command: Command) -> Command {
        // No other program is at the socket of a port with a buffer, and it looks into no tunnel.
        let of_device = (!BUFFERS).then(|| [inside(), order()]).into_iter().flatten();
        let options = keys(BUFFERS).map(option).chain([max_flows()]).chain(of_device);
        // A port with a buffer may be under a policy instead.
        command.args(options.map(|arg| if BUFFERS { arg.conflicts_with(POLICY) } else { arg }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(options: &[&str]) -> TreatmentChange {
        let command = <TreatmentChange as clap::Args>::augment_args(Command::new("set"));
        let matches = command.no_binary_name(true).get_matches_from(options);
        TreatmentChange::from_arg_matches(&matches).expect("a change")
    }

    #[test]
    fn what_is_not_known_is_replaced_or_refused() {
        let (mut underlay, mut mode) = (Params::default(), Params::default());
        (underlay.0.underlay, mode.0.mode) = (u8::MAX, u8::MAX);
        for (before, name) in [(underlay, "underlay"), (mode, "mode")] {
            assert!(before.underlay().is_none() || before.mode().is_none());
            let refused = change(&["--window-floor-segments=0"]).apply_to(before);
            let advice = format!("add --{name} NAME");
            assert!(refused.is_err_and(|why| why.ends_with(&advice)), "{name}");
        }
        let (params, _) = change(&["--underlay=cubic"]).apply_to(underlay).expect("known");
        assert!(params.underlay().is_some());
        let (params, _) = change(&["--mode=shadow"]).apply_to(mode).expect("known");
        assert_eq!(params.mode(), Some(Mode::Shadow));
    }
}
