import type { MigrationState, Placement, ProxyName } from "../plan/state.ts";

/** What verifying a node came to. */
export type Verified =
  | { readonly kind: "clean" }
  /** In words, a few lines at most. */
  | { readonly kind: "different"; readonly what: string }
  | { readonly kind: "unseen"; readonly reason: string };

/** Through what a migration sees and changes a cluster. Each call may fail; whoever runs it again loses nothing. */
export interface MigrationPort {
  observe(): Promise<MigrationState>;
  install(placement: Placement): Promise<void>;
  /** Removes what is there of Fairlead's objects, also where an earlier call has removed some. */
  uninstall(): Promise<void>;
  place(proxy: ProxyName, placement: Placement): Promise<void>;
  /** Compares the node's kernel with what should be programmed there: with what that proxy serves, in its mode. */
  verify(node: string, proxy: ProxyName): Promise<Verified>;
  /** Sets the node's label and takes its marks off. */
  assign(node: string, to: ProxyName): Promise<void>;
  /** As assign, and leaves the reason on the node. */
  putBack(node: string, to: ProxyName, reason: string): Promise<void>;
  /** Marks the node as served well by a proxy. */
  prove(node: string, proxy: ProxyName): Promise<void>;
  /** Takes labels and marks off all nodes. */
  unmark(): Promise<void>;
}
