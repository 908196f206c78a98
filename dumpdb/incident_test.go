package dumpdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every fact of every db of the incidents is what the run that made it observed.
func TestIncidentFacts(t *testing.T) {
	for _, s := range sources(t) {
		if s.damaged() {
			continue
		}
		t.Run(s.name(), func(t *testing.T) {
			want, ok := plain(t, s.truth["db"]).(map[string]any)
			if !ok {
				t.Fatal("truth.json has no db facts")
			}
			got := plain(t, facts(t, open(t, s.path))).(map[string]any)
			for k := range want {
				if w, g := unsorted(want[k]), unsorted(got[k]); !cmp.Equal(w, g) && (w != nil || fmt.Sprint(g) != "0") {
					t.Errorf("%s: %s", k, cmp.Diff(w, g))
				}
			}
		})
	}
}

// unsorted makes lists comparable whose order truth.json does not keep.
func unsorted(v any) any {
	l, ok := v.([]any)
	if !ok {
		return v
	}
	out := []string{}
	for _, e := range l {
		out = append(out, fmt.Sprint(e))
	}
	slices.Sort(out)
	return out
}

// The hashes are those that the servers of every line gave.
func TestIncidentHashKV(t *testing.T) {
	seen := 0
	for _, s := range sources(t) {
		for _, field := range []string{"hashkv_latest", "hashkv_common"} {
			h, ok := s.truth[field].(map[string]any)
			if !ok || s.damaged() {
				continue
			}
			seen++
			db := open(t, s.path)
			for _, rev := range []int64{number(t, h["rev"]), 0} {
				if rev == 0 && field == "hashkv_common" {
					continue
				}
				got, err := db.HashKV(context.Background(), rev)
				want := HashKV{uint32(number(t, h["hash"])), number(t, h["rev"]), number(t, h["compact_revision"])}
				if err != nil || got != want {
					t.Errorf("%s %s: got %+v %v, want %+v", s.name(), field, got, err, want)
				}
			}
		}
	}
	if seen < 30 {
		t.Errorf("only %d hashes compared", seen)
	}
}

func number(t *testing.T, v any) int64 {
	t.Helper()
	n, err := v.(json.Number).Int64()
	fatal(t, err)
	return n
}

// Sound files have no damage and no broken MVCC truth, and Inspect says the same as its parts.
func TestIncidentSound(t *testing.T) {
	ctx := context.Background()
	for _, s := range sources(t) {
		if s.damaged() {
			continue
		}
		db := open(t, s.path)
		in, err := db.Inspect(ctx)
		fatal(t, err)
		if len(in.Pages.Damage) > 0 || in.KVErr != nil || in.HashErr != nil || len(in.HashErrs) > 0 {
			t.Errorf("%s: %v %v %v %v", s.name(), in.Pages.Damage, in.KVErr, in.HashErr, in.HashErrs)
		}
		if s.incident != "o-backup-bit-flip" && len(in.KV.Violations) > 0 {
			t.Errorf("%s: %+v", s.name(), in.KV.Violations)
		}
		r, err := db.Check(ctx)
		fatal(t, err)
		st, err := db.KVStats(ctx)
		fatal(t, err)
		h, err := db.HashKV(ctx, 0)
		fatal(t, err)
		if !cmp.Equal(r, in.Pages) || !cmp.Equal(st, in.KV) || h != in.HashKV {
			t.Errorf("%s: Inspect differs: %s%s%s", s.name(), cmp.Diff(r, in.Pages), cmp.Diff(st, in.KV),
				cmp.Diff(h, in.HashKV))
		}
		for bucket, hash := range in.Hashes {
			if got, err := db.BucketHash(ctx, bucket); err != nil || got != hash {
				t.Errorf("%s: hash of %s is %s %v, Inspect says %s", s.name(), bucket, got, err, hash)
			}
		}
	}
}

// The page that was overwritten is named with the revisions below it, and everything else is still read.
func TestIncidentPageDamage(t *testing.T) {
	for _, s := range sources(t) {
		if !s.damaged() {
			continue
		}
		db := open(t, s.path)
		r, err := db.Check(context.Background())
		fatal(t, err)
		if len(r.Damage) != 1 || r.Complete {
			t.Fatalf("damage: %v", r.Damage)
		}
		d := r.Damage[0]
		first, last, ok := d.LostRevisions()
		if d.Page != 7 || d.Offset != 7*4096 || d.Bucket != "key" || first != 122 || last != 148 || !ok {
			t.Errorf("damage: %v, revisions %d to %d", d, first, last)
		}
		var de *DamageError
		if _, err := db.HashKV(context.Background(), 0); !errors.As(err, &de) || de.Page != 7 {
			t.Errorf("hash of a damaged bucket: %v", err)
		}
		st, err := db.KVStats(context.Background())
		if st.Revisions != 305-27 || err == nil || len(st.Violations) > 0 {
			t.Errorf("%d records, %v, %v", st.Revisions, err, st.Violations)
		}
	}
}

// Content hashes agree between members whose content agrees, whatever their compaction, layout and version differences.
func TestIncidentBucketHash(t *testing.T) {
	hashes := map[string]map[string]map[string]string{} // incident, bucket, node
	for _, s := range sources(t) {
		if s.damaged() {
			continue
		}
		in, err := open(t, s.path).Inspect(context.Background())
		fatal(t, err)
		for b, h := range in.Hashes {
			if hashes[s.incident] == nil {
				hashes[s.incident] = map[string]map[string]string{}
			}
			if hashes[s.incident][b] == nil {
				hashes[s.incident][b] = map[string]string{}
			}
			hashes[s.incident][b][s.node] = h
		}
	}
	equal := func(incident, bucket string, nodes ...string) bool {
		of := hashes[incident][bucket]
		for _, n := range nodes {
			if of[n] == "" || of[n] != of[nodes[0]] {
				return false
			}
		}
		return true
	}
	for _, incident := range []string{"m-healthy-3.5", "m-healthy-3.6", "m-healthy-3.7"} {
		for bucket := range hashes[incident] {
			if !equal(incident, bucket, "node1", "node2", "node4") {
				t.Errorf("%s: bucket %s differs: %v", incident, bucket, hashes[incident][bucket])
			}
		}
	}
	for bucket := range hashes["l-compaction-skew"] {
		if !equal("l-compaction-skew", bucket, "node1", "node2", "node3") {
			t.Errorf("l-compaction-skew: bucket %s differs", bucket)
		}
	}
	if equal("n-silent-kv-divergence", "key", "node1", "node2") ||
		!equal("n-silent-kv-divergence", "key", "node1", "node3") {
		t.Error("n-silent-kv-divergence: node2 alone differs in bucket key")
	}
	if !equal("a-auth-revision-replay", "authUsers", "node1", "node2", "node3") ||
		equal("a-auth-revision-replay", "auth", "node1", "node2") {
		t.Error("a-auth-revision-replay: users agree but for their salts, the auth revision does not")
	}
	if hashes["o-backup-good"]["key"]["backup"] == hashes["o-backup-bit-flip"]["key"]["backup"] {
		t.Error("a flipped value byte leaves the content hash as it was")
	}
}

func TestIncidentTrailer(t *testing.T) {
	for _, s := range sources(t) {
		got, err := open(t, s.path).Trailer()
		fatal(t, err)
		want := map[string]string{"o-backup-good": "match", "o-backup-bit-flip": "mismatch"}[s.incident]
		if want == "" {
			want = "absent"
		}
		if got.State != want {
			t.Errorf("%s: trailer %+v, want %s", s.name(), got, want)
		}
		if sum, ok := s.truth["computed_sha256_of_body"]; ok && sum != got.Computed {
			t.Errorf("%s: computed %s, want %s", s.name(), got.Computed, sum)
		}
	}
}
