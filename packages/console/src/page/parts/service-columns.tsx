import type { ServiceRow } from "../../protocol/index.ts";
import type { Difference } from "../findings.ts";
import { serviceAddress } from "../router.ts";
import type { Sort } from "../service-filter.ts";
import { ageText } from "./age.tsx";
import { Badge, Owner } from "./badge.tsx";
import type { Column } from "./row-list.tsx";

/** What the list says of a service; a narrow page has the first and the last ones. */
export function serviceColumns(
  differing: ReadonlyMap<string, readonly Difference[]>,
): readonly Column<ServiceRow, Sort>[] {
  return [
    {
      title: "Service",
      sort: "service",
      width: "26%",
      cell: (row) => (
        <a class="name" href={serviceAddress(row.service)}>
          {row.service}
        </a>
      ),
    },
    { title: "Owner", width: "14%", wide: true, cell: ({ owners }) => ownerCell(owners) },
    {
      title: "Frontends",
      wide: true,
      cell: ({ frontends }) => <span class="mono">{frontends.join("  ")}</span>,
      whole: ({ frontends }) => frontends.join("\n"),
    },
    {
      title: "Ready",
      sort: "ready",
      width: "80px",
      number: true,
      cell: ({ ready, endpoints }) => `${ready} / ${endpoints}`,
    },
    { title: "Local", sort: "local", width: "72px", number: true, wide: true, cell: ({ local }) => local },
    {
      title: "Draining",
      sort: "draining",
      width: "94px",
      number: true,
      wide: true,
      cell: ({ draining }) => (draining === 0 ? "–" : draining),
    },
    {
      title: "Age",
      sort: "age",
      width: "72px",
      number: true,
      wide: true,
      cell: ({ created }) => (created === undefined ? "–" : ageText(Math.max(0, Date.now() - created))),
    },
    { title: "State", width: "172px", cell: (row) => <State row={row} found={differing.get(row.service)} /> },
  ];
}

function State({ row, found }: { readonly row: ServiceRow; readonly found: readonly Difference[] | undefined }) {
  if (found !== undefined) return <Badge tone="bad" text={`differs on ${nodesText(found)}`} />;
  return row.ready === 0 ? <Badge tone="warn" text="no endpoint" /> : <>–</>;
}

function ownerCell(owners: ServiceRow["owners"]) {
  const different = [...new Set(Object.values(owners))];
  if (different.length === 0) return <Badge tone="plain" text="no ClusterIP" />;
  return different.map((ownership) => <Owner key={ownership} ownership={ownership} />);
}

function nodesText(found: readonly { readonly node: string }[]): string {
  const nodes = [...new Set(found.map(({ node }) => node))];
  return nodes.length === 1 ? (nodes[0] ?? "") : `${nodes.length} nodes`;
}
