package check

import "github.com/etcd-medic/etcd-medic/compare/replay"

// provenance answers how files came to be in a data dir other than by their own server: copied while it ran, restored,
// wiped, taken back to an earlier state.
type provenance struct {
	Members Sources
	Replay  *replay.Result
}
