// Package rebuild makes the database that a member would hold at a chosen point of the log: point-in-time recovery from
// a base (a backup, a data dir, or nothing for a log that reaches back to its first entry) and the committed entries
// behind it.
//
// Entries are executed by the rules of package compare/replay, which are those of the server's apply: permissions,
// leases, alarms, compares and compactions included. Members, cluster version, users and roles follow the log as well;
// meta holds consistent index, term and ConfState of the last entry executed. So the result is what a member of the
// cluster held there, except for what neither base nor log tell: salts of passwords that came in plain text (proposers
// up to 3.4), lease TTLs that servers raise to a minimum of their own, and the storage version, which every 3.6+ server
// writes on its own.
//
// Nothing is guessed over a gap: an index that no log holds ends in a RefusedError that names it. A single entry can be
// left out on purpose (skip); what later entries did differently because of that is found by executing both histories
// side by side.
package rebuild
