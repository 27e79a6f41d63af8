/** The titles of a table's columns; those of numbers come last. */
export function TableHead(props: { readonly titles: readonly string[]; readonly numbers?: readonly string[] }) {
  const { titles, numbers = [] } = props;
  return (
    <thead>
      <tr>
        {[...titles, ...numbers].map((title) => (
          <th key={title} scope="col" class={numbers.includes(title) ? "number" : ""}>
            {title}
          </th>
        ))}
      </tr>
    </thead>
  );
}
