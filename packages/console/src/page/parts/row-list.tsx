import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

export interface Column<T, S extends string> {
  readonly title: string;
  /** What sorts by it; absent: nothing does. */
  readonly sort?: S;
  readonly width?: string;
  readonly number?: boolean;
  /** A narrow page leaves it out. */
  readonly wide?: boolean;
  readonly cell: (row: T) => ComponentChildren;
  /** Where a cell may be too narrow: all of it. */
  readonly whole?: (row: T) => string;
}

interface Order<S extends string> {
  readonly sort: S;
  readonly descending: boolean;
}

export interface RowListProps<T, S extends string> {
  readonly label: string;
  readonly rows: readonly T[];
  readonly keyOf: (row: T) => string;
  readonly isBad: (row: T) => boolean;
  readonly columns: readonly Column<T, S>[];
  readonly order: Order<S>;
  readonly onOrder: (order: Order<S>) => void;
}

/** Pixels of a row with its line; the style sheet says the same. */
const HEIGHT = { wide: 33, narrow: 49 } as const;
const NARROW = "(max-width: 640px)";
/** Rows above and below those in view: what a quick hand scrolls to is there before the next frame. */
const MORE = 25;

/** A table of any length, of which only what is in view is in the document. */
export function RowList<T, S extends string>({ label, rows, keyOf, isBad, ...all }: RowListProps<T, S>) {
  const { order } = all;
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState<View>({ top: 0, height: 800, row: HEIGHT.wide });
  const isNarrow = view.row === HEIGHT.narrow;
  // Hidden columns would keep their width: the table's layout counts every column that a cell spans.
  const columns = isNarrow ? all.columns.filter(({ wide = false }) => !wide) : all.columns;
  const look = () => {
    const { scrollTop = 0, clientHeight = 800 } = box.current ?? {};
    setView({ top: scrollTop, height: clientHeight, row: matchMedia(NARROW).matches ? HEIGHT.narrow : HEIGHT.wide });
  };
  useLayoutEffect(() => {
    look();
    addEventListener("resize", look);
    return () => removeEventListener("resize", look);
  }, [rows.length]);
  useLayoutEffect(() => box.current?.scrollTo(0, 0), [order.sort, order.descending]);
  const from = Math.max(0, Math.min(Math.floor(view.top / view.row) - MORE, rows.length - 1));
  const until = Math.min(rows.length, Math.ceil((view.top + view.height) / view.row) + MORE);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by the keyboard
    <section class="list" ref={box} onScroll={look} tabIndex={0} aria-label={label} onKeyDown={moveFocus}>
      <table aria-rowcount={rows.length + 1}>
        <colgroup>
          {columns.map(({ title, width }) => (
            <col key={title} style={width === undefined ? {} : { "--width": width }} />
          ))}
        </colgroup>
        <Head columns={columns} order={order} onOrder={all.onOrder} />
        <Space height={from * view.row} columns={columns.length} />
        <tbody>
          {rows.slice(from, until).map((row, at) => (
            <tr key={keyOf(row)} aria-rowindex={from + at + 2} class={isBad(row) ? "bad" : ""}>
              {columns.map(({ title, number, cell, whole }) => (
                <td key={title} class={number === true ? "number" : ""} title={whole?.(row)}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
        <Space height={(rows.length - until) * view.row} columns={columns.length} />
      </table>
    </section>
  );
}

/** What is in view, in pixels. */
interface View {
  readonly top: number;
  readonly height: number;
  readonly row: number;
}

function Head<T, S extends string>(props: Pick<RowListProps<T, S>, "columns" | "order" | "onOrder">) {
  const { columns, order, onOrder } = props;
  return (
    <thead>
      <tr aria-rowindex={1}>
        {columns.map(({ title, sort, number }) => {
          const isSorted = sort !== undefined && sort === order.sort;
          const direction = order.descending ? "descending" : "ascending";
          const next = (by: S) => ({ sort: by, descending: isSorted && !order.descending });
          return (
            <th
              key={title}
              scope="col"
              class={number === true ? "number" : ""}
              {...(isSorted && { "aria-sort": direction })}
            >
              {sort === undefined ? (
                title
              ) : (
                <button type="button" class="sort" onClick={() => onOrder(next(sort))}>
                  {title}
                  <span aria-hidden="true">{isSorted ? (order.descending ? " ↓" : " ↑") : ""}</span>
                </button>
              )}
            </th>
          );
        })}
      </tr>
    </thead>
  );
}

function Space({ height, columns }: { readonly height: number; readonly columns: number }) {
  if (height <= 0) return null;
  return (
    <tbody class="space" aria-hidden="true">
      <tr>
        <td colSpan={columns} style={{ height: `${height}px` }} />
      </tr>
    </tbody>
  );
}

/** Up and down go from row to row. */
function moveFocus(event: KeyboardEvent): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const row = document.activeElement?.closest("tbody:not(.space) tr");
  if (step === undefined || row === null || row === undefined) return;
  event.preventDefault();
  const next = step > 0 ? row.nextElementSibling : row.previousElementSibling;
  next?.querySelector<HTMLElement>("a")?.focus();
}
