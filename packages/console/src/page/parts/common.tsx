/** The small parts that several pages are made of. */

import type { Ownership } from "@fairlead/core";
import type { Flow } from "@fairlead/inspect";
import { type ComponentChildren, h } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import type { LearnedAnswer, ReadResult } from "../../protocol.ts";
import type { Difference, Tone, Verdict } from "../findings.ts";
import type { RequestState, Running, Store } from "../store.ts";

/** What a view is made of, and how old that is; it counts on by itself. */
export function Age({ source = "", at }: { readonly source?: string; readonly at: number }) {
  return (
    <span class="age">
      {source === "" ? "" : `${source}, `}
      {useAge(at)} ago
    </span>
  );
}

/** Who is asked, and for how long by now. */
export function Asking({ of, since }: { readonly of: string; readonly since?: number | undefined }) {
  const [shown] = useState(Date.now());
  return (
    <p class="quiet">
      <span role="status">asking {of} …</span> <Since at={since ?? shown} />
    </p>
  );
}

function Since({ at }: { readonly at: number }) {
  return (
    <span class="age" aria-hidden="true">
      {useAge(at)}
    </span>
  );
}

function useAge(at: number): string {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000);
    return () => clearInterval(timer);
  }, []);
  return ageText(Math.max(0, now - at));
}

/** `97 s`, `4 min`, `30 h`, `12 d` */
export function ageText(ms: number): string {
  const seconds = Math.round(ms / 1_000);
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  const hours = Math.round(seconds / 3_600);
  return hours < 72 ? `${hours} h` : `${Math.round(hours / 24)} d`;
}

const SIGNS: Readonly<Record<Tone, string>> = { good: "✓", warn: "▲", bad: "✕", plain: "·" };

/** A state: its color never says more than sign and words. */
export function Badge({ tone, text }: Verdict) {
  return (
    <span class={`badge ${tone}`}>
      <span aria-hidden="true">{SIGNS[tone]}</span>
      {text}
    </span>
  );
}

/** What a look at something says, and how old that is or for how long it is asked for. */
export function Looked({ verdict, looked }: { readonly verdict: Verdict; readonly looked: AnyResult | undefined }) {
  if (looked === undefined) return <Badge {...verdict} />;
  return (
    <>
      <Badge {...verdict} /> {looked.state === "asking" ? <Since at={looked.at} /> : <Age at={looked.at} />}
    </>
  );
}

type AnyResult = ReadResult<unknown>;

/** Nodes that could not be looked at, and why: each reason once. */
export function Failures({
  looks,
}: {
  readonly looks: readonly (readonly [node: string, looked: AnyResult | undefined])[];
}) {
  const failed = looks.flatMap(([node, looked]) => (looked?.state === "failed" ? [[node, looked.error] as const] : []));
  return [...Map.groupBy(failed, ([, error]) => error)].map(([error, nodes]) => (
    <p class="notice warn" key={error}>
      {[...new Set(nodes.map(([node]) => node))].join(", ")}: {error}
    </p>
  ));
}

const OWNERS: Readonly<Record<Ownership, Verdict>> = {
  ours: { tone: "good", text: "ours" },
  mixed: { tone: "warn", text: "mixed" },
  foreign: { tone: "plain", text: "another network's" },
};

export function Owner({ ownership }: { readonly ownership: Ownership }) {
  return <Badge {...OWNERS[ownership]} />;
}

/** Findings of one service that are shown. */
const MOST = 20;

const WORDS = { missing: "missing", extra: "too much", different: "different", unknown: "unknown" } as const;

/** What of a service is not in the kernels as it should be: each rule by name. */
export function Findings({ differences }: { readonly differences: readonly Difference[] }) {
  return differences.map(({ node, family, service, kind, findings }) => (
    <div key={`${node} ${family} ${service}`}>
      <span class="badge bad">
        <span aria-hidden="true">✕</span>
        {kind} on {node}, {family}
        {service === undefined ? "" : `: ${service}`}
      </span>
      <ul class="findings">
        {findings.slice(0, MOST).map(({ kind: sort, where, what }) => (
          <li key={`${sort} ${where} ${what}`}>
            {WORDS[sort]} in {where}: <span class="rule">{what}</span>
          </li>
        ))}
        {findings.length > MOST && <li>and {findings.length - MOST} more</li>}
      </ul>
    </div>
  ));
}

interface Props {
  readonly label: string;
  readonly store: Store;
  /** "": all of them, where that can be chosen. */
  readonly node: string;
  /** What all of them are called; absent: one is always chosen. */
  readonly all?: string;
  readonly onNode: (node: string) => void;
}

export function NodeChoice({ label, store, node, all, onNode }: Props) {
  const names = [...new Set([...(node === "" ? [] : [node]), ...store.nodes.keys()])].sort();
  return (
    <label>
      {label}
      <select value={node} onChange={(event) => onNode(event.currentTarget.value)}>
        {all !== undefined && <option value="">{all}</option>}
        {names.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  );
}

/**
 * What may be wider than the page, such as a table, scrolls by itself and leaves the page where it is. Where there is
 * something to scroll, the keyboard reaches it.
 *
 * @param label says what it is, for users of screen readers
 */
export function Scroll({ label, children }: { readonly label: string; readonly children: ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null);
  const [isWide, setWide] = useState(false);
  const look = () => setWide((box.current?.scrollWidth ?? 0) > (box.current?.clientWidth ?? 0));
  useLayoutEffect(look);
  useLayoutEffect(() => {
    if (box.current === null) return;
    const sizes = new ResizeObserver(look);
    sizes.observe(box.current);
    return () => sizes.disconnect();
  }, []);
  const reached = isWide && { tabIndex: 0, role: "group" as const, "aria-label": label };
  return (
    <div class="scroll" ref={box} {...reached}>
      {children}
    </div>
  );
}

type LearnedStage = NonNullable<LearnedAnswer["networks"]>["cidrs"][number]["stage"];

const STAGES: Readonly<Record<LearnedStage, readonly [Tone, string]>> = {
  effective: ["good", "counts"],
  held: ["warn", "held back"],
  refused: ["bad", "refused"],
};

/** What becomes of a learned CIDR. */
export function Stage({ stage }: { readonly stage: LearnedStage }) {
  const [tone, text] = STAGES[stage];
  return <Badge tone={tone} text={text} />;
}

/** On which side a CIDR is. */
export const WHOSE = { own: "ours", excluded: "another network's" } as const;

/** A column: its title and what a row has in it, which may be a number, or as machines write it. */
type Column<T> = readonly [title: string, cell: (row: T) => ComponentChildren, kind?: "number" | "mono"];

interface TableProps<T> {
  readonly label: string;
  readonly rows: readonly T[];
  readonly keyOf: (row: T) => string;
  /** What the first one has names the row. */
  readonly columns: readonly Column<T>[];
  /** A name for the style sheet. */
  readonly look?: string;
}

export function Table<T>({ label, rows, keyOf, columns, look = "" }: TableProps<T>) {
  const titles = columns.map(([title]) => title);
  const numbers = columns.flatMap(([title, , kind]) => (kind === "number" ? title : []));
  return (
    <Scroll label={label}>
      <table class={look}>
        <TableHead titles={titles} numbers={numbers} />
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(([title, cell, kind = ""], at) => {
                const about = { class: kind, ...(at === 0 && { scope: "row" as const }) };
                return h(at === 0 ? "th" : "td", { key: title, ...about }, cell(row));
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

/** The titles of a table's columns, of which some are of numbers. */
export function TableHead(props: { readonly titles: readonly string[]; readonly numbers?: readonly string[] }) {
  const { titles, numbers = [] } = props;
  return (
    <thead>
      <tr>
        {titles.map((title) => (
          <th key={title} scope="col" class={numbers.includes(title) ? "number" : ""}>
            {title}
          </th>
        ))}
      </tr>
    </thead>
  );
}

const BYTES = new Intl.NumberFormat("en", {
  style: "unit",
  unit: "byte",
  unitDisplay: "narrow",
  notation: "compact",
  maximumFractionDigits: 1,
});

/** `7.7MB` */
export function bytesText(bytes: number): string {
  return BYTES.format(bytes);
}

/** Bytes and packets of one direction; a dash where the kernel does not count them. */
export function Volume({ volume }: { readonly volume: Flow["sent"] }) {
  if (volume === undefined) return <>–</>;
  return <span title={`${volume.bytes} bytes in ${volume.packets} packets`}>{bytesText(volume.bytes)}</span>;
}

interface WaitingProps {
  readonly title?: string;
  readonly asked: RequestState<unknown>;
  /** Who is asked; default: the console has it without asking a node. */
  readonly of?: string;
}

/** In place of what is not there yet, or is unknown. */
export function Waiting({ title, asked, of = "this console" }: WaitingProps) {
  return (
    <>
      {title !== undefined && (
        <div class="head">
          <h1>{title}</h1>
        </div>
      )}
      {asked.state === "failed" ? (
        <p class="notice bad" role="alert">
          {asked.error}
        </p>
      ) : (
        <Asking key={of} of={of} />
      )}
    </>
  );
}

/** Whether a node is asked again and again, and the way to end that, or to go on. */
export function Watched({ polled: { running, setRunning } }: { readonly polled: Running }) {
  return (
    <>
      {!running && (
        <span class="badge plain" role="status">
          stopped
        </span>
      )}
      <button type="button" onClick={() => setRunning(!running)}>
        {running ? "Stop" : "Go on"}
      </button>
    </>
  );
}
