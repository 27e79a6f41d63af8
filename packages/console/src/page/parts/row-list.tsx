import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

export interface Column<T> {
  readonly title: string;
  readonly width?: string;
  readonly number?: boolean;
  readonly cell: (row: T) => ComponentChildren;
  /** Where a cell may be too narrow: all of it. */
  readonly whole?: (row: T) => string;
}

export interface RowListProps<T> {
  readonly label: string;
  readonly rows: readonly T[];
  readonly keyOf: (row: T) => string;
  readonly isBad: (row: T) => boolean;
  readonly columns: readonly Column<T>[];
}

/** Pixels; the style sheet says the same. */
const HEIGHT = 33;
/** Rows above and below those in view: what a quick hand scrolls to is there before the next frame. */
const MORE = 25;

/** A table of any length, of which only what is in view is in the document. */
export function RowList<T>({ label, rows, keyOf, isBad, columns }: RowListProps<T>) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 800 });
  const look = () => {
    const { scrollTop = 0, clientHeight = 800 } = box.current ?? {};
    setView({ top: scrollTop, height: clientHeight });
  };
  useLayoutEffect(() => {
    look();
    addEventListener("resize", look);
    return () => removeEventListener("resize", look);
  }, [rows.length]);
  const from = Math.max(0, Math.min(Math.floor(view.top / HEIGHT) - MORE, rows.length - 1));
  const until = Math.min(rows.length, Math.ceil((view.top + view.height) / HEIGHT) + MORE);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls has to be reached by the keyboard
    <section class="list" ref={box} onScroll={look} tabIndex={0} aria-label={label} onKeyDown={moveFocus}>
      <table aria-rowcount={rows.length + 1}>
        <colgroup>
          {columns.map(({ title, width }) => (
            <col key={title} style={width === undefined ? {} : { width }} />
          ))}
        </colgroup>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map(({ title, number }) => (
              <th key={title} scope="col" class={number === true ? "number" : ""}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <Space rows={from} columns={columns.length} />
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
        <Space rows={rows.length - until} columns={columns.length} />
      </table>
    </section>
  );
}

function Space({ rows, columns }: { readonly rows: number; readonly columns: number }) {
  if (rows <= 0) return null;
  return (
    <tbody class="space" aria-hidden="true">
      <tr>
        <td colSpan={columns} style={{ height: `${rows * HEIGHT}px` }} />
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
