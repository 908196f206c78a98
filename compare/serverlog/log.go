package serverlog

var logMessages = []Message{
	{
		ID: "wal-crc", Pattern: `(?:walpb|wal): crc mismatch`,
		Means: "A record of the log does not fit its checksum, or a segment does not continue the one before.", OnDisk: "A changed byte in a segment, segments of different members mixed, or a copy taken while the server wrote.",
		Versions: "all; 3.6+ adds file and position", Causes: []string{"wal-crc-mismatch", "wal-segment-missing", "torn-live-copy", "wal-crc-false-alarm"}, Checks: []string{"W01", "W03"}, Rules: []string{"P07"},
		Do: []string{"see the damaged place and which entries it hides: etcd-medic dumplog DIR --raw", "reseed the member; a single member is repaired on a copy with etcd-medic repair wal"},
	},
	{
		ID: "wal-cannot-be-repaired", Pattern: `failed to read WAL, cannot be repaired|read wal error \(.*\) and cannot be repaired`,
		Means: "The log does not read to its end, and it is no torn last record, which alone the server repairs.", OnDisk: "Damage in the middle of the log; the error behind the message names it.",
		Versions: "3.3, 3.4: read wal error; 3.5+: failed to read WAL", Causes: []string{"wal-crc-mismatch", "wal-torn-tail-not-repaired", "wal-entry-over-10mb"}, Checks: []string{"W01", "W02", "W03"}, Rules: []string{"P07"},
		Do: []string{"find the place: etcd-medic diagnose over all members", "reseed the member"},
	},
	{
		ID: "wal-torn-repaired", Pattern: `repaired WAL|repairing .*\.wal|ignored? .* bad record|wal: repair`,
		Means: "The last record of the log was incomplete; the server kept the segment as .broken and cut it.", OnDisk: "A crash while an entry was written. With a majority holding the entry nothing is lost.",
		Versions: "all", Causes: []string{"wal-torn-tail"}, Checks: []string{"W02"}, Rules: []string{"P19"}, Do: []string{"make sure that the other members hold the entry: etcd-medic diagnose over all members"},
	},
	{
		ID: "wal-file-not-found", Pattern: `wal: file not found(?: which matches the snapshot index '(?P<snapshot>\d+)')?`,
		Means: "No segment begins at or before the raft snapshot in use.", OnDisk: "Segments were purged or lost, or the newest .snap could not be read and an older one is in use.",
		Versions: "all; 3.6+ names the index", Causes: []string{"wal-segment-missing", "wal-purged-while-needed", "snap-file-damaged"}, Checks: []string{"W03", "S01"}, Rules: []string{"P08", "P03"}, Do: []string{"reseed the member from a sound one"},
	},
	{
		ID: "wal-sequence", Pattern: `wal: file sequence numbers \(starting from (?P<from>\d+)\) do not increase continuously`,
		Means: "A segment in the middle of the log is missing.", OnDisk: "The numbers in the names of the *.wal files have a hole.",
		Versions: "3.6+", Causes: []string{"wal-segment-missing"}, Checks: []string{"W03"}, Rules: []string{"P07"}, Do: []string{"bring the missing segment back from a copy, or reseed the member"},
	},
	{
		ID: "wal-slice-bounds", Pattern: `wal: slice bounds out of range|runtime error: slice bounds out of range`,
		Means: "An entry's index lies beyond the next one that the log may hold.", OnDisk: "A gap between the raft snapshot in use and the first entry, often because the newest .snap is missing.",
		Versions: "3.3.23+, 3.4.10+, 3.5+; older panic", Causes: []string{"wal-entry-index-gap", "snap-files-removed", "snap-file-damaged"}, Checks: []string{"W03", "S01"}, Rules: []string{"P08"}, Do: []string{"reseed the member"},
	},
	{
		ID: "wal-conflicting-metadata", Pattern: `wal: conflicting metadata found`,
		Means: "Segments carry different member or cluster IDs.", OnDisk: "Segments of two members or clusters lie in one folder.",
		Versions: "all", Causes: []string{"member-identity-mismatch", "foreign-cluster"}, Checks: []string{"W03", "M01"}, Rules: []string{"P07"}, Do: []string{"find the foreign segment: etcd-medic dumplog DIR --raw", "bring the right files back, or reseed the member"},
	},
	{
		ID: "wal-snapshot-mismatch", Pattern: `wal: snapshot mismatch|wal: snapshot not found`,
		Means: "The log's record of the raft snapshot has another term, or there is none.", OnDisk: "Log and .snap file are of different times or members.",
		Versions: "all", Causes: []string{"wal-and-db-from-different-times"}, Checks: []string{"S01", "D05"}, Rules: []string{"P03"}, Do: []string{"restore log and snap folder from one moment"},
	},
	{
		ID: "wal-entry-too-large", Pattern: `wal: max entry size limit exceeded`,
		Means: "A record of the log is longer than the server believes.", OnDisk: "An entry above 10 MiB (refused by 3.3.23+, 3.4.10+, 3.5.0 to 3.5.4), or a damaged length word.",
		Versions: "3.3.23+, 3.4.10+, 3.5+", Causes: []string{"wal-entry-over-10mb", "wal-crc-mismatch"}, Checks: []string{"W01"}, Rules: []string{"P07"}, Do: []string{"a sound log opens with 3.5.5 and later"},
	},
	{
		ID: "wal-block-type", Pattern: `unexpected block type (?P<type>\S+)`,
		Means: "A record of the log has a type that etcd does not write.", OnDisk: "A changed byte in a record's type, which the checksum does not cover.",
		Versions: "all", Causes: []string{"wal-crc-mismatch"}, Checks: []string{"W01"}, Rules: []string{"P07"}, Do: []string{"see the record: etcd-medic dumplog DIR --raw"},
	},
	{
		ID: "v2-entry-refused", Pattern: `detected disallowed v2 WAL for stage`,
		Means: "3.6 met a v2 write in the log that it no longer executes.", OnDisk: "v2 requests other than member attributes and cluster version lie above the newest raft snapshot.",
		Versions: "3.6", Causes: []string{"v2-content-blocks-36"}, Rules: []string{"P13"}, Do: []string{"let 3.5 take a raft snapshot behind them, then check: etcd-medic preflight DIR --to 3.6"},
	},
	{
		ID: "unmarshal-should-never-fail", Pattern: `unmarshal should never fail`,
		Means: "An entry of the log does not decode.", OnDisk: "On 3.7 and later nearly always a v2 request (written by 3.5 and older at every start) above the newest raft snapshot; else damaged entry data under a valid checksum, or a user name that is no UTF-8.",
		Versions: "all; 3.7+ for v2 requests", Causes: []string{"downgrade-or-storage-version-mismatch"}, Checks: []string{"W01"}, Rules: []string{"P13", "P16"},
		Do: []string{"check: etcd-medic preflight DIR --to 3.7", "let the old line take a raft snapshot behind the v2 requests (small --snapshot-count, some writes), or go by way of 3.6 and wait for its snapshot"},
	},
}
