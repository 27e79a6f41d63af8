import { createNamespace, type NetworkNamespace } from "@fairlead/kernel/netns";
import type { ControlPlane } from "../../control-plane/control-plane.ts";
import type { GuestLink } from "../../uml/boot.ts";
import { applyLines, applySettings, runnerIn } from "../../wire/apply.ts";
import { kernelSettings } from "../../wire/settings.ts";
import { openControlPlane } from "../netns/control-plane.ts";
import type { ClusterRequest, Progress } from "../provider.ts";
import { MACHINE_END, machineLines, TAP } from "./link.ts";

/** What a guest's cluster has outside of it: the machine's end of the link, and the control plane there. */
export interface Outside {
  readonly namespace: NetworkNamespace;
  /** Given to the guest when it boots. */
  readonly link: GuestLink;
  /** The address of this end. */
  readonly host: string;
  readonly controlPlane: ControlPlane;
}

/** @param opened gets what has to be closed */
export async function openOutside(
  request: Pick<ClusterRequest, "families" | "kubernetes">,
  folder: string,
  opened: AsyncDisposableStack,
  progress: Progress,
): Promise<Outside> {
  const namespace = opened.use(await createNamespace());
  await applySettings(runnerIn(namespace), kernelSettings("outside"));
  await applyLines(runnerIn(namespace), machineLines);
  const controlPlane = await openControlPlane(request, { namespace, addresses: MACHINE_END, folder }, progress);
  opened.defer(() => controlPlane.dispose());
  const host = MACHINE_END[request.families[0] ?? "IPv4"];
  return { namespace, link: { namespace, tap: TAP }, host, controlPlane };
}
