/** What the release workflow does for a commit of main. */
export type ReleaseMode = "version" | "publish" | "none";

/** What that depends on. */
export interface ReleaseState {
  /** Changesets that are not taken in yet. */
  readonly changesets: number;
  /** Of all packages. */
  readonly version: string;
  /** All tags of the repository. */
  readonly tags: readonly string[];
}

/** Before the first release. */
const UNRELEASED = "0.0.0";

export function releaseTag(version: string): string {
  return `v${version}`;
}

/**
 * A version without its tag is published: the tag comes last, with the GitHub release, so that a run which broke off is
 * repeated as a whole. Each step of a release leaves alone what is there already.
 */
export function releaseMode({ changesets, version, tags }: ReleaseState): ReleaseMode {
  if (changesets > 0) return "version";
  return version === UNRELEASED || tags.includes(releaseTag(version)) ? "none" : "publish";
}
