/** What is wrong with the line being read; the reader adds where it stands. */
export class Problem extends Error {}
