package serverlog

var databaseMessages = []Message{
	{
		ID: "bolt-pages", Pattern: `freepages: failed to get all reachable pages|page (?P<page>\d+): already freed|Page expected to be: (?P<want>\d+), but self identifies as (?P<have>\d+)|unexpected page type|page \d+: multiple references|invalid page type`,
		Means: "bbolt met a page that is not what the tree says.", OnDisk: "A damaged, overwritten or half-written page of member/snap/db.",
		Versions: "all", Causes: []string{"bbolt-page-damage", "torn-live-copy", "db-truncated"}, Checks: []string{"D02"}, Rules: []string{"P02"},
		Do: []string{"name the page and the revisions below it: etcd-medic inspect DIR", "reseed the member; of a single member rebuild the database from its readable pages and the log, on a copy"},
	},
	{
		ID: "bolt-open", Pattern: `failed to open database|(?:bolt|bbolt)?:? ?invalid database|file size too small`,
		Means: "bbolt does not take the file for a database.", OnDisk: "Both meta pages are invalid, or the file is cut short.",
		Versions: "all", Causes: []string{"bbolt-meta-damage", "db-truncated"}, Checks: []string{"D01", "D02"}, Rules: []string{"P02"}, Do: []string{"see what can be read: etcd-medic dumpdb DB --salvage", "reseed the member"},
	},
	{
		ID: "revision-key-invalid", Pattern: `invalid revision length|invalid separator in bucket key|negative revision`,
		Means: "A record of bucket key has no revision for a key.", OnDisk: "A damaged record in bucket key.",
		Versions: "3.6+", Causes: []string{"mvcc-record-contradiction", "bbolt-page-damage"}, Checks: []string{"D03", "K04"}, Rules: []string{"P12"}, Do: []string{"reseed the member"},
	},
	{
		ID: "value-undecodable", Pattern: `failed to unmarshal mvccpb\.(?:KeyValue|Event)|cannot unmarshal event`,
		Means: "The value of a record in bucket key does not decode.", OnDisk: "A damaged value in bucket key.",
		Versions: "all", Causes: []string{"bbolt-page-damage", "mvcc-record-contradiction"}, Checks: []string{"D03", "K04"}, Rules: []string{"P12"}, Do: []string{"reseed the member"},
	},
	{
		ID: "lease-undecodable", Pattern: `failed to unmarshal lease proto item`,
		Means: "A row of bucket lease does not decode.", OnDisk: "A damaged row in bucket lease.",
		Versions: "all", Causes: []string{"bbolt-page-damage"}, Checks: []string{"D03"}, Rules: []string{"P12"}, Do: []string{"reseed the member"},
	},
	{
		ID: "auth-undecodable", Pattern: `failed to unmarshal 'authpb\.(?:User|Role)'`,
		Means: "A user or role does not decode.", OnDisk: "A damaged row in bucket authUsers or authRoles.",
		Versions: "3.4+", Causes: []string{"auth-structure-broken", "bbolt-page-damage"}, Checks: []string{"D03"}, Rules: []string{"P12"}, Do: []string{"reseed the member"},
	},
	{
		ID: "put-smaller-revision", Pattern: `'put' with an unexpected smaller revision`,
		Means: "A key's revisions are not in order while the index is built.", OnDisk: "Reordered or duplicated records, or a current revision that fell after a crash in a compaction (up to 3.4.31, 3.5.13).",
		Versions: "all", Causes: []string{"revision-decrease-after-compaction-crash", "mvcc-record-contradiction"}, Checks: []string{"K04"}, Do: []string{"see the records of the key: etcd-medic history KEY DIR...", "reseed the member"},
	},
	{
		ID: "tombstone-empty-index", Pattern: `'tombstone' got an unexpected empty keyIndex`,
		Means: "A key is deleted that the index does not know.", OnDisk: "The index and bucket key disagree: records are missing.",
		Versions: "all", Causes: []string{"mvcc-record-contradiction", "tombstone-dropped-at-compact-revision"}, Checks: []string{"K04"}, Do: []string{"diagnose all members; reseed this one"},
	},
	{
		ID: "revision-pair-not-found", Pattern: `range failed to find revision pair`,
		Means: "A running server's index names a record that is no longer in the database.", OnDisk: "Records vanished below a running server: damaged pages, or the file was replaced.",
		Versions: "all", Causes: []string{"bbolt-page-damage", "mvcc-record-contradiction"}, Checks: []string{"D02", "K04"}, Do: []string{"stop the member, copy its dir, diagnose it, reseed it"},
	},
	{
		ID: "store-recovery-failed", Pattern: `failed to recover store from backend|failed to restore (?:mvcc|KV) store|failed to find a bucket`,
		Means: "Bucket key could not be read at boot.", OnDisk: "A bucket is missing or a record is damaged; the lines before say which.",
		Versions: "all", Causes: []string{"bbolt-page-damage", "mvcc-record-contradiction"}, Checks: []string{"D02", "D03", "K04"}, Rules: []string{"P02", "P12"}, Do: []string{"reseed the member"},
	},
	{
		ID: "space-exceeded", Pattern: `mvcc: database space exceeded|alarm raised.*NOSPACE|NOSPACE`,
		Means: "The database reached its quota; writes are refused until the alarm is disarmed.", OnDisk: "An alarm NOSPACE in bucket alarm; the data is sound.",
		Versions: "all", Causes: []string{"nospace-alarm", "orphan-alarm"}, Checks: []string{"M06"}, Do: []string{"compact, defragment each member, then etcdctl alarm disarm"},
	},
}
