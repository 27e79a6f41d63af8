import { mergedDiffers } from "@fairlead/testkit";
import type { KernelState } from "../../../../src/index.ts";
import { type View, viewOf } from "../../../../src/index.ts";

/** A view of which each packet's merged ways are compared with its single ones. */
export function checkedView(state: KernelState): View {
  const view = viewOf(state);
  return {
    ...view,
    tracer: {
      ...view.tracer,
      explore(packet, environment, options) {
        const [differs] = mergedDiffers(view.tracer, packet, environment ?? {});
        if (differs !== undefined) throw new Error(`merged ways: ${differs}`);
        return view.tracer.explore(packet, environment, options);
      },
    },
  };
}
