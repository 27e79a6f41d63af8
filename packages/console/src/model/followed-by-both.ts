import type { OtherSubscription } from "@fairlead/watch";

/** What each of the two made of an object; undefined: it can make nothing of it. */
interface Decoded {
  readonly one: unknown;
  readonly other: unknown;
}

/** One subscription of objects that two want: a source has one for each resource. */
export function followedByBoth(one: OtherSubscription, other: OtherSubscription): OtherSubscription {
  return {
    resource: one.resource,
    decode: (raw): Decoded => ({ one: one.decode(raw), other: other.decode(raw) }),
    onChange: async (change) => {
      if (change.type !== "upsert") {
        await one.onChange(change);
        await other.onChange(change);
        return;
      }
      // An upsert has what `decode` gave.
      const decoded = change.object as Decoded;
      if (decoded.one !== undefined) await one.onChange({ ...change, object: decoded.one });
      if (decoded.other !== undefined) await other.onChange({ ...change, object: decoded.other });
    },
    onState: (state) => {
      one.onState?.(state);
      other.onState?.(state);
    },
  };
}
