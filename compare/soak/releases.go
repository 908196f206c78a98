package soak

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/etcd-medic/etcd-medic/compare/evidence/clustertest"
	"github.com/etcd-medic/etcd-medic/release"
)

// upgrades are the releases through which a cluster is led, one step each.
var upgrades = []string{"3.4.3", "3.4.23", "3.5.35", "3.6.16", "3.7.3"}

// wholeUpgrades are the releases to which every member of a cluster is led.
var wholeUpgrades = []string{"3.6.16"}

// upgrade leads the members to the next release, one after the other. Sometimes it stops half way: a cluster of two
// releases.
func (h *History) upgrade() {
	at := slices.Index(upgrades, h.s.Line)
	next := upgrades[min(at+1, len(upgrades)-1)]
	if next == h.s.Line {
		return
	}
	h.waitVersion(`"etcdcluster":"` + h.s.Line[:3])
	half := h.rng.IntN(4) == 0 && !slices.Contains(wholeUpgrades, next)
	h.lead(next, half)
	h.s.Line = next
}

// downgrade enables a downgrade by one minor release, waits until every member has taken back its storage version, and
// leads the members there, one after the other. Sometimes it is canceled, or stops half way.
func (h *History) downgrade() {
	next := upgrades[slices.Index(upgrades, h.s.Line)-1]
	if !release.Of(next).Has(release.ClusterRequests).Certain() { // it cannot be asked for
		return
	}
	h.waitVersion(`"etcdcluster":"` + h.s.Line[:3])
	if !h.askDowngrade(clientv3.DowngradeEnable, next[:4]+"0") {
		return
	}
	h.burst(4)
	h.waitVersion(`"etcdcluster":"`+next[:3], `"storage":"`+next[:3])
	if h.rng.IntN(4) == 0 {
		h.askDowngrade(clientv3.DowngradeCancel, "")
		h.s.Shape.Downgrade = false
		return
	}
	h.lead(next, h.rng.IntN(4) == 0)
	h.s.Line = next
}

func (h *History) askDowngrade(do clientv3.DowngradeAction, version string) bool {
	ctx, cancel := h.context()
	defer cancel()
	_, err := h.c.Client(h.any()).Downgrade(ctx, do, version)
	h.say("downgrade to %q, action %d: %v", version, do, err)
	return err == nil
}

// lead starts the members again with another release, one after the other, or only one of them.
func (h *History) lead(next string, half bool) {
	h.led = true
	for n, i := range h.voters() {
		if half && n > 0 {
			h.say("it stops half way")
			h.s.Shape.Upgrade, h.s.Shape.Downgrade = false, false
			break
		}
		h.say("%s goes from %s to %s", h.c.Name(i), h.s.Line, next)
		h.c.Stop(i)
		h.c.Use(i, clustertest.Server(h.t, next))
		h.c.StartProcess(i)
		h.c.WaitServing(i)
		h.settle()
		h.burst(4)
	}
}

// waitVersion waits until every running member answers with some versions.
func (h *History) waitVersion(want ...string) {
	h.c.WaitUntil("all members work at "+strings.Join(want, " and "), func(ctx context.Context) error {
		for _, i := range h.voters() {
			v, err := h.version(ctx, i)
			if err != nil {
				return err
			}
			for _, w := range want {
				if !strings.Contains(v, w) {
					return fmt.Errorf("%s works at %s", h.c.Name(i), v)
				}
			}
		}
		return nil
	})
}

// version asks a member for its versions: those of its program, its cluster and, from 3.6 on, its storage.
func (h *History) version(ctx context.Context, i int) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.c.Endpoint(i)+"/version", nil)
	if err != nil {
		return "", err
	}
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Body.Close() }()
	b, err := io.ReadAll(io.LimitReader(r.Body, 1<<10))
	return string(b), err
}
