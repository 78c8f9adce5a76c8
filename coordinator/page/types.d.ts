/* Types of the coordinator's page: elements with their own methods, what the coordinator sends, and how views fit
 * together. For the type checker alone: no browser reads this file. */

/** A number that may be missing. */
type Maybe = number | null | undefined;

/** Elements of index.html that are more than an HTMLElement, by their ids. */
interface PageElements {
  chooser: HTMLSelectElement;
  dialog: HTMLDialogElement;
  "dialog-cancel": HTMLButtonElement;
  "dialog-form": HTMLFormElement;
  "dialog-go": HTMLButtonElement;
  filter: HTMLInputElement;
  fleet: HTMLTableElement;
  "key-expires": HTMLSelectElement;
  "key-form": HTMLFormElement;
  "key-label": HTMLInputElement;
  "key-uses": HTMLInputElement;
  keys: HTMLTableElement;
  rounds: HTMLTableElement;
  "sign-in": HTMLFormElement;
  tasks: HTMLTableElement;
  token: HTMLInputElement;
}

/* What the coordinator sends: coordinator/http/routes/view_models.py and live_events.py */

interface SessionInfo {
  role: "admin" | "viewer";
  version: string;
  charts: boolean;
  style_ids: string[];
}

interface FederationInfo {
  name: string;
  state: string;
  reason: string | null;
  strategy: string;
  model: string;
  rounds: number;
  accuracy: number | null;
  /** The share of the parameters in the part that the accuracy is of. */
  judged_fraction: number | null;
  created_at: number;
  settings?: { rounds?: { deadline?: number }; selection?: { available_within?: number } } | null;
}

type ProgressPart = "arrived" | "uploading" | "training" | "waiting" | "late" | "refused" | "missing";

interface ProgressInfo extends Record<ProgressPart | "selected", number> {
  round: number;
  personal: boolean;
  state: string;
  wanted: number;
  opened_at: number;
  deadline_at: number;
  closed_because: string | null;
}

interface RoundInfo extends LongTableRow {
  number: number;
  state: string;
  opened_at: number;
  closed_at: number | null;
  done_at: number | null;
  closed_because: string | null;
  report: Record<string, number | null> | null;
}

interface FleetChange {
  columns?: string[];
  rows?: unknown[][];
  gone?: string[];
}

/** A snapshot or a change of a federation. */
interface LiveData {
  now?: number;
  federation?: FederationInfo;
  progress?: ProgressInfo | null;
  rounds?: RoundInfo[];
  fleet?: FleetChange;
}

/** What a task was and cost, beside what was predicted. */
interface TaskFacts {
  kept: number | null;
  trained: number | null;
  /** The rung of its program for people; null if it ran the ONNX graph. */
  rung: string | null;
  step_seconds: number | null;
  predicted_step_seconds: number | null;
  round_seconds: number | null;
  peak_bytes: number | null;
  predicted_peak_bytes: number | null;
  joules: number | null;
  predicted_joules: number | null;
  energy_label: string | null;
  down_bytes: number | null;
  up_bytes: number | null;
  heat: string | null;
  accuracy: number | null;
  loss: number | null;
  samples: number | null;
}

interface DeviceRow extends TaskFacts, LongTableRow {
  id: string;
  class: string;
  /** The training engine that it uses first. */
  engine: string | null;
  state: string;
  why: string | null;
  seen_at: number;
  since: number | null;
  round: number | null;
  done: number;
  failed: number;
  /** Made here: the id as a text that sorts naturally, the text that a filter searches, the number of the change. */
  order: string;
  search: string;
  stamp: number;
}

interface TaskRow extends TaskFacts, LongTableRow {
  id: string;
  round: number;
  state: string;
  created_at: number;
  refusal: { reason: string; message: string } | null;
}

interface DeviceProfileInfo {
  device_name?: string;
  machine?: { system?: string; architecture?: string; cores?: number };
  engine?: string;
  threads?: number;
  memory_free_bytes?: number;
  memory_total_bytes?: number;
  storage_free_bytes?: number;
  download_bytes_per_second?: number;
  upload_bytes_per_second?: number;
  power?: { busy_watts: number; idle_watts: number; source: string; provenance: string } | null;
  temperature_celsius?: number | null;
  cost?: { relative_error: number } | null;
  measured_at: string;
}

interface CapabilitiesInfo {
  client: { name: string; version: string };
  platform: string;
  engines?: { name: string; version: string; format: string }[];
  rules?: string[];
  codecs?: string[];
  batch_sizes?: number[] | null;
}

interface DeviceInfo {
  state: string;
  software: string;
  enrolled_at: number;
  seen_at: number;
  revoked_at: number | null;
  key: string;
  left_out: string | null;
  capabilities?: CapabilitiesInfo | null;
  profile: DeviceProfileInfo;
}

interface PlanInfo {
  round: number;
  deadline_seconds: number;
  work?: { epochs?: number; batch_size?: number; most_steps?: number | null };
  rule?: { name?: string; settings?: Record<string, unknown> };
  predicted?: { seconds?: number; peak_bytes?: number; joules?: number } | null;
}

interface ChartInfo {
  name: string;
  title: string;
  summary: string;
  key?: [string, string][];
  height?: number;
  spec: ChartSpec;
}

interface DevicePage {
  device: DeviceInfo;
  plan: PlanInfo | null;
  tasks: TaskRow[];
  charts: ChartInfo[];
}

interface MasksInfo {
  round: number | null;
  devices: number;
  plan: [string, string, string][];
  notes: string[];
  charts: ChartInfo[];
}

interface KeyInfo {
  id: string;
  label: string;
  created_at: number;
  uses: number;
  most_uses: number | null;
  expires_at: number | null;
  revoked_at: number | null;
}

interface KeyRow extends KeyInfo, LongTableRow {
  state: string;
}

interface NewKeyInfo extends KeyInfo {
  key: string;
  uri: string;
  join: string;
  qr: string | null;
  app_qr: string | null;
}

/* Long tables: cells.js and virtual_table.js */

/** A row of a long table. A stamp, if it has one, changes when anything in the row does. */
interface LongTableRow {
  stamp?: number;
}

/** A column of a long table. */
interface Column<Row> {
  name: string;
  title: string;
  /** In pixels. */
  width: number;
  /** What the column is sorted by; rows without a value come last. */
  value: (row: Row) => string | number | null | undefined;
  /** The text of a cell, unless `fill` writes it. */
  text?: (row: Row) => string;
  /** Aligned to the right, largest first. */
  number?: boolean;
  /** What a new cell holds. */
  make?: () => Node[];
  /** Writes a row into a cell. */
  fill?: (cell: HTMLTableCellElement, row: Row) => void;
  /** What is shown when the pointer rests on a cell. */
  hint?: (row: Row) => string | null;
  /** Its text changes with time alone. */
  ticks?: boolean;
  /** Has no order. */
  unsorted?: boolean;
}

interface SortOrder {
  column: string;
  descending: boolean;
}

interface TableOptions<Row> {
  columns: Column<Row>[];
  key: (row: Row) => string;
  /** The attribute that marks each line with the key of its row. */
  attribute: string;
  sort: SortOrder;
  /** The name of the table. */
  label: string;
}

/* Views and the page */

interface View {
  title: string;
  heading: HTMLElement;
  open(argument: string | null): void;
  update(news: Set<string>): void;
  tick(): void;
  close(): void;
  reset(): void;
}

/** What views and actions ask of the page. */
interface App {
  readonly role: SessionInfo["role"] | null;
  readonly stale: boolean;
  ready: boolean;
  standing: import("./static/standing.js").Standing;
  go(view: string): void;
  learn(federation: FederationInfo): void;
  say(text: string): void;
  signOut(problem?: unknown): void;
  failed(error: unknown): boolean;
  turnTo(name: string): void;
}

/** Who is told what happens to the stream of a federation. */
interface LiveListener {
  /** An event came. */
  hear(kind: string, data: LiveData): void;
  /** A connection has its first event; called before that is heard. */
  live(): void;
  /** The stream fell silent: since when, in ms since 1970, or null if nothing was ever heard. */
  stale(since: number | null): void;
  /** When the next attempt will be, in ms since 1970; null while one is under way. */
  trying(at: number | null): void;
  /** The token is not valid or the federation does not exist: the stream stays closed. */
  refused(problem: import("./static/api.js").Problem): void;
}

/** An entry of the actions menu: a name, its text, and what a press does. */
type ActionEntry = [name: string, text: string, press: () => void];
