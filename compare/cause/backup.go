package cause

import (
	"slices"

	"github.com/etcd-medic/etcd-medic/compare/check"
)

var backupTruncated = Cause{
	ID: "backup-truncated", Title: "the backup lost its end",
	Doc: `The meta page of the backup says how many pages it has; the file ends before, or in the middle of the sha256 behind them. A download or
copy that was interrupted, a full disk, or a snapshot save that was killed before it renamed its .part file.`,
	LookAlikes: "a database copied from a data dir, which has no trailer and may be longer than its content, never shorter",
	Recovery:   "fetch the file again from where it was saved; else use another backup",
	Loss:       "the pages behind the end; what is left can be extracted",
	Match: func(in *Input) *Match {
		return byField(in, "a longer copy of the same file whose trailer fits", "B02", check.FieldTruncated,
			check.FieldCutTrailer)
	},
}

var backupHashMismatch = Cause{
	ID: "backup-hash-mismatch", Title: "the backup changed after it was saved",
	Doc: `The sha256 that snapshot save appended does not fit the bytes before it, or is no longer the end of the file because something was appended
(a line end, another sha256). etcdutl snapshot restore refuses the file; snapshot status does not check it.`,
	LookAlikes: "a file that was opened read-write after it was saved (etcdutl hashkv, an older snapshot status): " +
		"content may be sound, the proof is gone",
	Recovery: "use another backup, or take a new one from a healthy member",
	Loss:     "unknown: any byte may have changed",
	Match: func(in *Input) *Match {
		const refuted = "another copy of the file whose trailer fits"
		if m := byField(in, refuted, "B01", check.FieldSHA256); m != nil {
			return m
		}
		return byField(in, refuted, "B02", check.FieldAppended)
	},
}

var backupWithoutHash = Cause{
	ID: "backup-without-hash", Title: "no sha256 proves the bytes of the backup",
	Doc: `The file has no trailer: it was copied from a data dir (member/snap/db), or it is a raft snapshot database (.snap.db), or a tool stripped its
end. Structure and history can be checked, a changed byte inside a value can not. snapshot restore takes it with --skip-hash-check only; a
database copied while its server ran may be torn.`,
	LookAlikes: "a backup that lost exactly its last 32 bytes",
	Recovery:   "take backups with etcdctl snapshot save; this one restores with --skip-hash-check",
	Loss:       "none that can be seen",
	Match: func(in *Input) *Match {
		m := &Match{Certainty: Proof, RefutedBy: "the same file with 32 more bytes that are its sha256"}
		for _, b := range in.Findings["B01"] {
			if fieldIs(b, []string{check.FieldNoTrailer}) &&
				!slices.ContainsFunc(in.Findings["B02"],
					func(f check.Finding) bool { return slices.Equal(f.Members, b.Members) }) {
				m.Members, m.Because = append(m.Members, b.Members...), append(m.Because, b.ID)
			}
		}
		if len(m.Because) == 0 {
			return nil
		}
		return m
	},
}
