//! How a port's connections are to be treated, as the command line says it.

use std::num::NonZeroU32;

use clap::builder::{PossibleValuesParser, RangedU64ValueParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{ArgMatches, Command, FromArgMatches};
use vcc_engine::{GuestEcn, Mode, OnFull, Underlay};
use vcc_policy::units::{Beta, BytesPerMs, size};
use vcc_port::AttachOptions;

/// With all the names, for help and completions.
fn underlays() -> impl TypedValueParser<Value = Underlay> {
    PossibleValuesParser::new(Underlay::all().map(Underlay::name)).try_map(|name| name.parse())
}

#[derive(clap::Args)]
struct Flags {
    /// The congestion control that the fabric shall see
    #[arg(long, value_name = "NAME", default_value_t, value_parser = underlays())]
    underlay: Underlay,

    /// Compute everything, change nothing
    #[arg(long)]
    shadow: bool,

    /// Reduce windows at once instead of by RFC 6937
    #[arg(long)]
    no_prr: bool,

    /// Take no reduction back where the peer says that nothing was lost (RFC 2883)
    #[arg(long)]
    no_undo: bool,

    /// Leave PSH as the guest sets it
    #[arg(long)]
    no_pace_push: bool,

    /// Neither offer nor accept feedback of marked bytes between two ends under vcc
    #[arg(long)]
    no_feedback: bool,

    /// Drop what guests send beyond the window that they were shown
    #[arg(long, conflicts_with = "shadow")]
    police: bool,

    /// Let `vcc emit` send duplicate ACKs and window updates to guests without SACK whose own
    /// timeout is far off
    #[arg(long, conflicts_with = "shadow")]
    emit: bool,

    /// Without an acknowledgement for MS milliseconds, duplicate ACKs are due [default: 10]
    #[arg(long, value_name = "MS", requires = "emit", value_parser = RangedU64ValueParser::<u32>::new().range(1..=60_000))]
    emit_after: Option<u32>,

    /// How much marks count, from 1, as for DCTCP, to 0, twice as much; for dctcp-priority
    /// [default: 1]
    #[arg(long, value_name = "X")]
    beta: Option<Beta>,

    /// No window beyond SIZE bytes (K, M, G: KiB, MiB, GiB)
    #[arg(long, value_name = "SIZE", value_parser = cap)]
    cap: Option<NonZeroU32>,

    /// No window beyond what RATE bits a second fill in a round trip (K, M, G: thousands, millions,
    /// billions)
    #[arg(long, value_name = "RATE")]
    cap_rate: Option<BytesPerMs>,

    /// No window below N segments, where the receiver admits them [default: 1]
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<u32>::new().range(1..=1000))]
    floor: Option<u32>,

    /// Show windows of up to SIZE bytes exactly (K, M, G: KiB, MiB, GiB) [default: 2M]
    #[arg(long, value_name = "SIZE", value_parser = window_max)]
    window_max: Option<u32>,

    /// Track up to N connections a port; those beyond pass untouched, or see --on-full [default: 65536]
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<u32>::new().range(1..=1 << 24))]
    max_flows: Option<u32>,

    /// What becomes of a new connection beyond --max-flows: pass (untranslated) or drop
    #[arg(long, value_name = "WHAT", default_value = "pass")]
    on_full: OnFull,

    /// Answer marks also for guests that negotiate ECN themselves
    #[arg(long)]
    override_guest_ecn: bool,
}

impl Flags {
    fn options(&self) -> Result<AttachOptions, String> {
        let AttachOptions { treatment: default, max_flows } = AttachOptions::default();
        let with_beta = vcc_engine::Treatment::UNDERLAY_WITH_PRIORITY;
        if self.beta.is_some() && self.underlay.name() != with_beta {
            return Err(format!(
                "--beta is for `--underlay {with_beta}`; {} knows no priorities",
                self.underlay
            ));
        }
        let treatment = vcc_engine::Treatment {
            underlay: self.underlay,
            mode: if self.shadow { Mode::Shadow } else { default.mode },
            guest_ecn: if self.override_guest_ecn { GuestEcn::Override } else { default.guest_ecn },
            prr: !self.no_prr,
            undo: !self.no_undo,
            pace_push: !self.no_pace_push,
            feedback: !self.no_feedback,
            police: self.police,
            emit: self.emit,
            emit_after_us: self.emit_after.map_or(default.emit_after_us, |ms| ms * 1000),
            beta_1024: self.beta.map_or(default.beta_1024, Beta::in_1024ths),
            cap_bytes: self.cap,
            cap_bytes_per_ms: self.cap_rate.map(|rate| rate.get()),
            window_floor_segs: self.floor.unwrap_or(default.window_floor_segs),
            window_max_bytes: self.window_max.unwrap_or(default.window_max_bytes),
            on_full: self.on_full,
            ..default
        };
        if let (Some(floor), Some(cap)) = (self.floor, self.cap)
            && cap.get() < treatment.least_floor_bytes()
        {
            return Err(format!(
                "--floor wins over --cap: no window is smaller than {floor} segments, which are {} \
                 bytes even of the smallest",
                treatment.least_floor_bytes()
            ));
        }
        Ok(AttachOptions { treatment, max_flows: self.max_flows.unwrap_or(max_flows) })
    }
}

/// What the flags together come to; flags that contradict each other make none.
pub struct Treatment {
    options: AttachOptions,
}

impl Treatment {
    pub fn options(&self) -> AttachOptions {
        self.options.clone()
    }

    pub fn is_shadow(&self) -> bool {
        self.options.treatment.mode == Mode::Shadow
    }
}

impl FromArgMatches for Treatment {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let refused = |why| clap::Error::raw(ErrorKind::ArgumentConflict, why);
        let options = Flags::from_arg_matches(matches)?.options().map_err(refused)?;
        Ok(Self { options })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl clap::Args for Treatment {
    fn augment_args(command: Command) -> Command {
        Flags::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Flags::augment_args_for_update(command)
    }
}

/// From what needs no scale to the most that a scale can express (RFC 7323, 2.3).
fn window_max(text: &str) -> Result<u32, String> {
    let bytes = size::parse(text)?;
    if (1 << 16..=1 << 30).contains(&bytes) {
        Ok(bytes)
    } else {
        Err("must be 64K to 1G".to_owned())
    }
}

fn cap(text: &str) -> Result<NonZeroU32, String> {
    NonZeroU32::new(size::parse(text)?).ok_or_else(|| "must be more than 0".to_owned())
}
