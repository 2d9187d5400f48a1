//! A [`Point`] summarizes several runs of one workload; a [`Results`] document holds points.

mod achieved;
mod answer;
mod checks;
mod clients;
pub mod columns;
pub mod compare;
mod csv;
mod disturbances;
mod document;
mod figure;
mod finding;
pub mod history;
mod interference;
mod json;
mod ladder;
mod latency_goal;
mod limit;
mod long_writes;
mod metadata;
mod operation;
mod output;
mod over_time;
mod overview;
#[cfg(feature = "parquet")]
mod parquet;
mod point;
mod question;
mod rate_change;
pub mod rules;
mod scaling;
mod seconds;
mod soundness;
mod visits;
mod words;

pub use achieved::{Achieved, CpuPerRequest, cached_percent};
pub use answer::{
    Advertised, Answer, Burst, CostMode, CostModel, CostScope, Fixed, Goal, HalfPower,
    MAX_FIT_ERROR, Peak, PeakSource, PlainRate, Predicted, RandomBurst, Rule, RuleState,
    ServiceMode, ServiceModel, Varied,
};
pub use checks::{CACHED_PERCENT, NO_IO};
pub use clients::{Client, ClientNumbers, Clients, PointClients, SLOW_SHARE, jain};
pub use csv::{csv, history_csv};
pub use disturbances::Disturbances;
pub use document::{Began, Experiment, Kind, Program, Results, SCHEMA};
pub use figure::{Axis, CurveName, Figure, Series, Value};
pub use finding::{Finding, FindingStep, PeakDoubt, RatesInWords, UncertainGain};
pub use interference::{ConcurrentWorkload, Interference, measure_interference};
pub use json::{DOCUMENT, Error, parse, read, schema, to_json, to_json_with};
pub use ladder::{Advertises, Ladder, Method, Reached, Stage, StageKind, StageRate};
pub use latency_goal::{
    LatencyGoal, SearchBy, measure_rate_within_p99, measure_within_p99, meets_published_p99,
};
pub use limit::{
    Bottleneck, BusyPart, Cause, CheckChange, DEEPER_GAIN, ExcludedBy, Exclusion, Expected, GAIN,
    Limit, LimitChange, LimitOf, LimitTrial, Meaning, PlainWrite, ReadAhead, Refutation, SAME,
    WriteBackWait,
};
pub use long_writes::{FELL, Lasting, LongWrites, WriteLevel, WriteRate};
pub use metadata::{MetadataResult, OperationResult, Rounds, measure_metadata};
pub use operation::{Latency, OperationRate};
pub use output::{Growing, Output, OutputError, append};
pub use over_time::IntervalNumbers;
pub use overview::{ClassicRate, ClassicRow, Overview, SmallRequests, Speed, Tail};
#[cfg(feature = "parquet")]
pub use parquet::HistoryTable;
pub use point::{
    LatencySummary, Numbers, Point, RunNumbers, StripeRecord, WorkloadRecord, folded_warnings,
    measure_points, points_of,
};
pub use question::Question;
pub use rate_change::{RateChange, RatePhase};
pub use scaling::{
    Growth, GrowthNumbers, ModelForm, OperationScaling, OperationStep, Scaling, ScalingLimit,
    ScalingModel, ScalingPrediction, ScalingStep, SlowClient,
};
pub use seconds::SecondRecord;
pub use visits::representatives;
