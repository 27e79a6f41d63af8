/**
 * What the image gives its Node for the agent; one option, as an interpreter line takes no more. V8 lets the old generation grow to so
 * many MB before it marks for the first time. Else it lowers that limit with each small collection, and marks what a start has just read
 * while the first rules are written: a tenth of the first sync of 1,000 services. What stays resident is the same.
 */
export const agentNodeOption = "--initial-old-space-size=64";
