/** What would change with other objects or another configuration. */

import { useEffect, useState } from "preact/hooks";
import type { FateData, OwnerMove, WhatIfAnswer, WhatIfNetworks } from "../../protocol.ts";
import { Age, Badge, Owner, Stage, Table, Waiting, WHOSE } from "../parts/common.tsx";
import { serviceAddress } from "../router.ts";
import { ask, type RequestState, type Store } from "../store.ts";

interface Props {
  readonly store: Store;
  readonly query: URLSearchParams;
}

/** What a change would be decided about, and which traffic it would change. Nothing is applied to anything. */
export function WhatIfView({ store, query }: Props) {
  const [manifests, setManifests] = useState("");
  const [configuration, setConfiguration] = useState("");
  const [cidr, setCIDR] = useState(query.get("cidr") ?? "");
  const [asked, setAsked] = useState<RequestState<WhatIfAnswer> | undefined>();
  const compare = async () => {
    setAsked({ state: "asking" });
    setAsked(await ask<WhatIfAnswer>("api/what-if", { manifests, configuration, cidr }));
  };
  useEffect(() => {
    store.look([]);
    if (cidr !== "") void compare();
  }, []);
  const submit = (event: Event) => {
    event.preventDefault();
    void compare();
  };
  return (
    <>
      <div class="head">
        <h1>What if</h1>
        <span class="quiet">
          What would be decided, and change for packets on {store.facts?.node}. Nothing is applied.
        </span>
      </div>
      <form onSubmit={submit}>
        <TextOrFiles
          label="Objects that come, or take the place of those of their names: Services, EndpointSlices, and those that networks are learned from"
          name="objects"
          text={manifests}
          onText={setManifests}
        />
        <details open={configuration !== ""}>
          <summary>Another configuration of the agents</summary>
          <TextOrFiles
            label="A file of --config, in place of the agents' configuration; the mode stays"
            name="configuration"
            text={configuration}
            onText={setConfiguration}
          />
        </details>
        <div class="tools">
          <label>
            A CIDR that would be another network's
            <input value={cidr} placeholder="10.88.0.0/16" onInput={(event) => setCIDR(event.currentTarget.value)} />
          </label>
          <button type="submit" class="first">
            Compare
          </button>
        </div>
      </form>
      {asked !== undefined &&
        (asked.state === "answered" ? <WhatIfChanges answer={asked.answer} /> : <Waiting asked={asked} />)}
    </>
  );
}

/** More rows than anybody reads. */
const MOST = 200;

/** What a change would bring about: CIDRs that would be held or refused, services that change hands, traffic. */
function WhatIfChanges({ answer }: { readonly answer: WhatIfAnswer }) {
  const { services, owners, networks, families, planAt, node } = answer;
  return (
    <section class="panel" aria-label="What changes" aria-live="polite">
      <h2>
        <Age source={`plan of ${node}`} at={planAt} />
      </h2>
      {networks !== undefined && <WhatIfCIDRs networks={networks} />}
      <Owners owners={owners} />
      {services.length > 0 && (
        <p>
          Planned differently:{" "}
          {services.slice(0, MOST).map((service, at) => (
            <span key={service}>
              {at === 0 ? "" : ", "}
              <a href={serviceAddress(service)}>{service}</a>
            </span>
          ))}
          {services.length > MOST && `, and ${services.length - MOST} more`}
        </p>
      )}
      {families === undefined ? (
        <p>
          {services.length} services are planned differently. That is more than are compared packet by packet here;
          <code class="rule"> fairlead diff</code> compares them.
        </p>
      ) : (
        <TrafficChanges families={families} />
      )}
    </section>
  );
}

function Owners({ owners }: { readonly owners: readonly OwnerMove[] }) {
  if (owners.length === 0) {
    return (
      <h3>
        <Badge tone="good" text="no service changes hands" />
      </h3>
    );
  }
  return (
    <>
      <h3>
        <Badge
          tone="warn"
          text={owners.length === 1 ? "1 service changes hands" : `${owners.length} services change hands`}
        />
      </h3>
      <Table
        label="Services that change hands"
        rows={owners.slice(0, MOST)}
        keyOf={({ service, family }) => `${service} ${family}`}
        columns={[
          ["Service", ({ service }) => <a href={serviceAddress(service)}>{service}</a>],
          ["Family", ({ family }) => family],
          ["Now", ({ before }) => <Owner ownership={before} />],
          ["Then", ({ after }) => <Owner ownership={after} />],
          ["Why", ({ why }) => why],
        ]}
      />
      {owners.length > MOST && <p class="quiet">and {owners.length - MOST} more</p>}
    </>
  );
}

function TrafficChanges({ families }: { readonly families: NonNullable<WhatIfAnswer["families"]> }) {
  const changes = families.flatMap(({ family, traffic }) => traffic.changes.map((one) => ({ family, ...one })));
  if (changes.length === 0) {
    return (
      <h3>
        <Badge tone="good" text="no traffic changes" />
      </h3>
    );
  }
  return (
    <>
      <h3>
        <Badge
          tone="warn"
          text={changes.length === 1 ? "1 kind of traffic changes" : `${changes.length} kinds of traffic change`}
        />
      </h3>
      <Table
        label="Traffic that changes"
        rows={changes}
        keyOf={({ family, destination, from }) => `${family} ${destination} ${from.join()}`}
        columns={[
          ["To", ({ destination }) => destination, "mono"],
          ["From", ({ from }) => from.join(", ")],
          ["Now", ({ before }) => fateText(before), "mono"],
          ["Then", ({ after }) => fateText(after), "mono"],
        ]}
      />
    </>
  );
}

function fateText(fate: FateData): string {
  if ("problem" in fate) return `unknown: ${fate.problem}`;
  const ways = Object.entries(fate.ways);
  if (ways.length === 1) return ways[0]?.[0] ?? "";
  return ways.map(([way, share]) => `${way} ${Number((share * 100).toFixed(1))} %`).join(", ");
}

/** What would become of learned CIDRs: which count, which are held or refused, and why. */
function WhatIfCIDRs({ networks: { cidrs, problems, unread } }: { readonly networks: WhatIfNetworks }) {
  return (
    <>
      {[...problems, ...unread.map((one) => `${one}; what it says is on neither side of this comparison`)].map(
        (text) => (
          <p class="notice warn" key={text}>
            {text}
          </p>
        ),
      )}
      {cidrs.length === 0 ? (
        <p>The learned CIDRs stay as they are.</p>
      ) : (
        <Table
          label="Learned CIDRs that change"
          rows={cidrs}
          keyOf={({ cidr, side, source }) => `${side} ${source} ${cidr}`}
          columns={[
            ["CIDR", ({ cidr }) => cidr, "mono"],
            ["Whose", ({ side }) => WHOSE[side]],
            ["Now", ({ before }) => (before === undefined ? "not there" : <Stage stage={before} />)],
            ["Then", ({ after, why }) => [after === undefined ? "gone" : <Stage stage={after} />, " ", why]],
            ["From", ({ objects, source }) => [objects.join(", "), " ", <span class="quiet">{source}</span>]],
          ]}
        />
      )}
    </>
  );
}

interface FilesProps {
  readonly label: string;
  /** What the files are, in a word or two. */
  readonly name: string;
  readonly text: string;
  readonly onText: (text: string) => void;
}

/** YAML or JSON that is pasted, or read from files of the user's machine. */
function TextOrFiles({ label, name, text, onText }: FilesProps) {
  const load = async (input: HTMLInputElement) => {
    const texts = await Promise.all(Array.from(input.files ?? [], (file) => file.text()));
    onText([...(text.trim() === "" ? [] : [text]), ...texts].join("\n---\n"));
    // The same files can be chosen again.
    input.value = "";
  };
  return (
    <div class="text-or-files">
      <label>
        {label} (YAML or JSON)
        <textarea value={text} onInput={(event) => onText(event.currentTarget.value)} spellcheck={false} />
      </label>
      <label class="inline">
        Add {name} from files
        <input type="file" multiple accept=".yaml,.yml,.json" onChange={(event) => void load(event.currentTarget)} />
      </label>
    </div>
  );
}
