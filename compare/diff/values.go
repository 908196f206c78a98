package diff

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"

	"github.com/cespare/xxhash/v2"

	"github.com/etcd-medic/etcd-medic/dumpdb"
)

// sum64 finds differences; what a report shows is a sha256, taken for the listed rows only.
func sum64(b []byte) uint64 { return xxhash.Sum64(b) }

// shownDigest is the length of the hex digest in reports.
const shownDigest = 16

// Digest returns the first 16 hex digits of the sha256, the form in which values stand in reports.
func Digest(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])[:shownDigest]
}

// fillValues reads the values of the listed rows again.
func (r *Result) fillValues(ctx context.Context, b *Bucket, o Options) error {
	for i, m := range r.Members {
		want := map[int64][]*Cell{}
		var from int64
		keys := map[*Cell][]byte{}
		for _, row := range b.Rows {
			if c := row.Cells[i]; c != nil {
				want[c.Mod] = append(want[c.Mod], c)
				keys[c] = row.Key
				if from == 0 || c.Mod < from {
					from = c.Mod
				}
			}
		}
		if len(want) == 0 {
			continue
		}
		left := len(keys)
		for rev, err := range m.DB.Handle.RevisionsFrom(dumpdb.Rev{Main: from}) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				continue
			}
			for _, c := range want[rev.Main] {
				if bytes.Equal(keys[c], rev.KV.Key) {
					c.ValueSHA = Digest(rev.KV.Value)
					if o.Values {
						c.Value = bytes.Clone(rev.KV.Value)
					}
					left--
				}
			}
			if left <= 0 {
				break
			}
		}
	}
	return nil
}
