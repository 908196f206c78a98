package serverlog

var snapMessages = []Message{
	{
		ID: "no-database-snapshot", Pattern: `failed to find database snapshot file|database snapshot file path error|snap: snapshot file doesn't exist`,
		Means: "The raft snapshot in use is ahead of the database, and the database that the leader sent for it is not there.", OnDisk: "meta/consistent_index is below the snapshot's index (the db is missing, new, or an older copy), without a matching <index>.snap.db.",
		Versions: "all (3.3: database snapshot file path error)", Causes: []string{"data-dir-rolled-back", "db-or-snap-dir-removed", "snap-db-missing-second-snapshot", "cindex-frozen-by-stale-term"}, Checks: []string{"S02", "D04"}, Rules: []string{"P05"},
		Do: []string{"treat the member as one that lost its data: remove, set the dir aside, add, start empty"},
	},
	{
		ID: "database-does-not-match-snapshot", Pattern: `database file \((?P<file>\S+) index (?P<index>\d+)\) does not match with snapshot \(index (?P<snapshot>\d+)\)`,
		Means: "The database is older than the raft snapshot.", OnDisk: "0 < consistent_index < index of the snapshot, after the snapshot step.",
		Versions: "all", Causes: []string{"data-dir-rolled-back", "cindex-below-snapshot-34", "cindex-not-saved-by-defrag"}, Checks: []string{"S02"}, Rules: []string{"P05"}, Do: []string{"reseed the member"},
	},
	{
		ID: "database-missing", Pattern: `database file \((?P<file>\S*)\) of the backend is missing`,
		Means: "Log and snapshot tell of a v3 cluster, but there was no database file. The server has deleted the empty one it made.", OnDisk: "member/snap/db was absent.",
		Versions: "all", Causes: []string{"db-or-snap-dir-removed"}, Checks: []string{"X02"}, Rules: []string{"P09"}, Do: []string{"bring the file back from the same moment, or reseed the member"},
	},
	{
		ID: "snap-damaged", Pattern: `snap: crc mismatch|snap: empty snapshot|failed to read a snap file|renamed corrupted snap file`,
		Means: "A .snap file does not decode; up to 3.6 the server renames it to .broken and takes the next older one.", OnDisk: "A changed byte in a .snap file, or an empty one.",
		Versions: "all; 3.7 does not read them", Causes: []string{"snap-file-damaged"}, Checks: []string{"S01"}, Rules: []string{"P03"}, Do: []string{"see whether the log reaches back to an older snapshot: etcd-medic preflight DIR --to VERSION"},
	},
	{
		ID: "v2-recovery-failed", Pattern: `failed to recover from snapshot|failed to get members from store`,
		Means: "The v2 store inside of the .snap file does not decode.", OnDisk: "Damaged JSON in the newest .snap file.",
		Versions: "up to 3.6", Causes: []string{"snap-file-damaged"}, Checks: []string{"S01"}, Rules: []string{"P03"}, Do: []string{"reseed the member"},
	},
	{
		ID: "v2-content-refused", Pattern: `detected disallowed custom content in v2store`,
		Means: "3.6 refuses to start over keys of the v2 API.", OnDisk: "The v2 store in the newest .snap file holds keys below /1.",
		Versions: "3.6 (3.5 when so set)", Causes: []string{"v2-content-blocks-36"}, Rules: []string{"P04"}, Do: []string{"export them with 3.5, delete them, let it take a raft snapshot, then go to 3.6"},
	},
	{
		ID: "recover-backend-failed", Pattern: `failed to recover v3 backend from snapshot`,
		Means: "The server could not put the database of the raft snapshot in place; the error behind it says why.", OnDisk: "See the error behind the message.",
		Versions: "3.4+", Causes: []string{"data-dir-rolled-back", "db-or-snap-dir-removed"}, Checks: []string{"S02"}, Rules: []string{"P05"}, Do: []string{"reseed the member"},
	},
	{
		ID: "consistent-index-never-saved", Pattern: `consistent index was never saved`,
		Means: "A warning: the database does not say what it has applied, although there is a raft snapshot.", OnDisk: "meta/consistent_index is absent: a foreign or edited database, or one from before 3.0.",
		Versions: "3.4+", Causes: []string{"cindex-missing", "saved-snapshot-used-as-db"}, Checks: []string{"S02"}, Do: []string{"compare the member with the others before it serves: etcd-medic diagnose"},
	},
}
