package serverlog

var versionMessages = []Message{
	{
		ID: "invalid-downgrade", Pattern: `invalid downgrade; server version is lower than determined cluster version|cluster cannot be downgraded \(current version: (?P<server>\S+) is lower than determined cluster version: (?P<cluster>[\d.]+)\)`,
		Means: "The server is older than the cluster version it found.", OnDisk: "A newer line has raised the cluster version (bucket cluster, the .snap file, or an entry of the log).",
		Versions: "all (3.3, 3.4.3: cluster cannot be downgraded)", Causes: []string{"downgrade-or-storage-version-mismatch"}, Rules: []string{"P10"}, Do: []string{"run the line that wrote the dir", "to go down: etcdctl downgrade enable on the running cluster (3.5.23 and 3.6 on), or restore a backup"},
	},
	{
		ID: "storage-version-unsupported", Pattern: `version "(?P<version>[\d.]+)" is not supported|failed to validate schema`,
		Means: "The storage was raised by a newer line than this server.", OnDisk: "meta/storageVersion is newer than the server.",
		Versions: "3.6+", Causes: []string{"downgrade-or-storage-version-mismatch"}, Rules: []string{"P06"}, Do: []string{"run the line that wrote the dir, or downgrade the cluster first"},
	},
	{
		ID: "storage-version-undetected", Pattern: `failed to detect storage schema version|cannot detect storage schema version`,
		Means: "A warning: the database is of 3.4 or older, or of 3.5 before its first raft snapshot.", OnDisk: "There is neither meta/storageVersion nor meta/term.",
		Versions: "3.6+", Rules: []string{"P21", "P22"}, Do: []string{"nothing; it goes away with the next raft snapshot"},
	},
	{
		ID: "downgrade-newer-entries", Pattern: `cannot downgrade storage, WAL contains newer entries`,
		Means: "The storage can not go down yet: the log since the last raft snapshot uses what the older line does not know.", OnDisk: "Entries of a newer line above the newest raft snapshot.",
		Versions: "3.6+", Causes: []string{"downgrade-or-storage-version-mismatch"}, Rules: []string{"P14"}, Do: []string{"wait for a raft snapshot (or write enough for one), then try again"},
	},
	{
		ID: "not-implemented", Pattern: `panic: not implemented|not implemented apply`,
		Means: "The server is to execute a request that a newer line introduced.", OnDisk: "Such an entry lies above the consistent index: lines were mixed, or the dir was written by a newer one.",
		Versions: "all", Causes: []string{"downgrade-or-storage-version-mismatch"}, Rules: []string{"P14"}, Do: []string{"run the line that wrote the dir"},
	},
	{
		ID: "conf-change-type", Pattern: `ConfChange type should be either AddNode, RemoveNode or UpdateNode`,
		Means: "3.3 met a learner.", OnDisk: "The log adds a learner, which is of 3.4.",
		Versions: "3.3, 3.4 (internal)", Rules: []string{"P15"}, Do: []string{"run 3.4 or later"},
	},
}
