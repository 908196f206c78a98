// Package rebuild builds the database that a member would have at a chosen point of the log. This is point-in-time
// recovery from a base (a backup, a data dir, or nothing for a log that reaches back to its first entry) and the later
// committed entries.
//
// Entries are executed by the rules of package compare/replay, which are those of the server's apply, including
// permissions, leases, alarms, compares and compactions. Members, cluster version, users and roles follow the log as
// well. meta has consistent index, term and ConfState of the last executed entry. So the result is what a member of the
// cluster had there, except for what neither base nor log contain: salts of passwords in plain text (proposers up to
// 3.4), lease TTLs that servers raise to their own minimum, and the storage version, which every 3.6+ server writes
// itself.
//
// An entry is committed if a source shows it, or if the logs of a majority of the voters hold it (compare/majority).
//
// Nothing is guessed over a gap: an index that is in no log ends in a refusal.Error that names it. A single entry can
// be skipped on purpose. To find its effect on later entries, both histories are executed in parallel.
package rebuild
