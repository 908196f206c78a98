//go:build !(linux && amd64)

package node_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/etcd-medic/etcd-medic/node"
)

// tracing is written for Linux on amd64.
func tracing() (handled bool, code int) { return false, 0 }

// TestLives takes a cluster through founding, auth, a second life and a reseed, for each kind of peer URL in each
// isolation.
func TestLives(t *testing.T) {
	for _, iso := range isolations(t) {
		for kind, urls := range urlKinds {
			t.Run(string(iso)+"/"+strings.ReplaceAll(kind, " ", "-"), func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				start := time.Now()
				if err := scenario(ctx, t.TempDir(), urls, node.Options{Isolation: iso}); err != nil {
					t.Fatal(err)
				}
				t.Log(time.Since(start))
			})
		}
	}
}
