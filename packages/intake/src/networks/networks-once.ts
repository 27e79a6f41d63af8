import type { Clock } from "@fairlead/base";
import type { ClusterView } from "@fairlead/core";
import { API_SERVER } from "@fairlead/endpoint-filter";
import { Networks, type NetworksDecision, type NetworksReport, type NetworksSettings } from "@fairlead/networks";
import type { OtherSubscription } from "@fairlead/watch";
import { ClusterServices } from "./cluster-services.ts";
import { askedFor, networkSubscriptions } from "./subscriptions.ts";

export interface NetworksOnceParts {
  readonly settings: NetworksSettings;
  readonly clock: Pick<Clock, "now" | "monotonic">;
  /** All that there is to know is known. May come more than once. */
  readonly onReady: () => void;
}

/** What is learned of networks at one time. */
export interface LearnedOnce {
  readonly decision: NetworksDecision;
  readonly report: NetworksReport;
  /** What is wrong with objects: `Subnet/typo: spec.cidrBlock …` */
  readonly problems: readonly string[];
}

/** The networks of a cluster as they are now, for tools that look once. */
export class NetworksOnce {
  readonly subscriptions: readonly OtherSubscription[];
  readonly #networks: Networks;
  readonly #problems: string[] = [];

  constructor({ settings, clock, onReady }: NetworksOnceParts) {
    const networks = new Networks(settings, clock);
    this.#networks = networks;
    this.subscriptions = networkSubscriptions({
      networks,
      ...askedFor(settings),
      onChange: () => {
        if (networks.ready) onReady();
      },
      onProblem: (_source, object, problem) => this.#problems.push(`${object}: ${problem}`),
    });
  }

  /** @param state all services, with the EndpointSlices of those that are asked about */
  decide(state: ClusterView, serviceCIDRs: readonly string[]): LearnedOnce {
    const services = new ClusterServices(state);
    for (const _one of services.refresh(state.keys()));
    this.#networks.objects.setServiceCIDRs(serviceCIDRs);
    this.#networks.objects.setAPIServer(services.addresses(API_SERVER));
    const decision = this.#networks.decide(services);
    return { decision, report: this.#networks.report(), problems: this.#problems };
  }
}
