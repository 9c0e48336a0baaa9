// Prints what the audits of the GraphQL over HTTP specification find at an address: [{ status, id, name, reason }].
import { serverAudits } from "graphql-http";

const found = [];
for (const audit of serverAudits({ url: process.argv[2] })) {
  const { status, id, name, reason } = await audit.fn();
  found.push({ status, id, name, reason });
}
console.log(JSON.stringify(found));
