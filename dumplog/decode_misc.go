package dumplog

import (
	"cmp"
	"errors"

	"github.com/etcd-medic/etcd-medic/internal/wire"
)

// MaxParts and MaxPayload bound what is decoded of one request: its operations, compares, checkpoints and the like, and
// its bytes. In memory a part takes up to a hundred times the two bytes in which it can be written. A transaction of a
// server has 128 operations (--max-txn-ops) in 1.5 MiB (--max-request-bytes), unless it is set to take more.
const (
	MaxParts   = 200_000
	MaxPayload = 64 << 20
)

// TooLargeError is the error of a request that may be sound but is too large to be decoded.
type TooLargeError struct{ what string }

// Error says what there is too much of.
func (e *TooLargeError) Error() string { return "the request " + e.what + " and is not decoded" }

var (
	errParts   = &TooLargeError{"has more than 200000 operations or other parts"}
	errPayload = &TooLargeError{"is larger than 64 MiB"}
	errNesting = &TooLargeError{"nests transactions deeper than 100"}
)

// part counts one part of the request.
func (d *Decoder) part() error {
	if d.parts++; d.parts > MaxParts {
		return errParts
	}
	return nil
}

// TooLarge returns a *TooLargeError for an entry whose request is too large to be decoded.
func (d *Decoder) TooLarge(e *Entry) error {
	if len(e.Data) <= 2*MaxParts { // no part is shorter
		return nil
	}
	_, err := d.Decode(e)
	if large := new(TooLargeError); errors.As(err, &large) {
		return large
	}
	return nil
}

func (d *Decoder) leaseGrant(b []byte) error {
	r := &d.mem.grant
	*r = LeaseGrantRequest{}
	d.req.LeaseGrant = r
	return d.message("lease_grant", b, func(f *field) bool {
		switch f.Num {
		case 1:
			return num(f, &r.TTL)
		case 2:
			return num(f, &r.ID)
		}
		return false
	})
}

func (d *Decoder) leaseRevoke(b []byte) error {
	r := &d.mem.lease
	*r = LeaseRevokeRequest{}
	d.req.LeaseRevoke = r
	return d.message("lease_revoke", b, func(f *field) bool { return f.Num == 1 && num(f, &r.ID) })
}

// leaseCheckpoint reads LeaseCheckpointRequest {1 {1 ID, 2 remaining_TTL}*}.
func (d *Decoder) leaseCheckpoint(b []byte) error {
	r := new(LeaseCheckpointRequest)
	d.req.LeaseCheckpoint = r
	var bad error
	err := d.message("lease_checkpoint", b, func(f *field) bool {
		if f.Num != 1 || f.Type != wire.Bytes {
			return false
		}
		if bad = cmp.Or(bad, d.part()); errors.Is(bad, errParts) {
			return true
		}
		var c LeaseCheckpoint
		err := d.message("lease_checkpoint.checkpoints", f.B, func(f *field) bool {
			switch f.Num {
			case 1:
				return num(f, &c.ID)
			case 2:
				return num(f, &c.RemainingTTL)
			}
			return false
		})
		bad = cmp.Or(bad, err) // the first of them: joined, many would take quadratic time to print
		r.Checkpoints = append(r.Checkpoints, c)
		return true
	})
	return errors.Join(err, bad)
}

func (d *Decoder) alarm(b []byte) error {
	r := new(AlarmRequest)
	d.req.Alarm = r
	return d.message("alarm", b, func(f *field) bool {
		switch f.Num {
		case 1:
			return num(f, &r.Action)
		case 2:
			return num(f, &r.MemberID)
		case 3:
			return num(f, &r.Alarm)
		}
		return false
	})
}

func (d *Decoder) clusterVersion(b []byte) error {
	r := new(ClusterVersionSet)
	d.req.ClusterVer = r
	return d.message("cluster_version_set", b, func(f *field) bool { return f.Num == 1 && str(f, &r.Version) })
}

// memberAttr reads ClusterMemberAttrSetRequest {1 member_ID, 2 {1 name, 2 client_urls*}}.
func (d *Decoder) memberAttr(b []byte) error {
	r := new(ClusterMemberAttrSet)
	d.req.MemberAttr = r
	var bad error
	err := d.message("cluster_member_attr_set", b, func(f *field) bool {
		if f.Num == 1 {
			return num(f, &r.MemberID)
		}
		if f.Num != 2 || f.Type != wire.Bytes {
			return false
		}
		bad = d.message("cluster_member_attr_set.member_attributes", f.B, func(f *field) bool {
			switch f.Num {
			case 1:
				return str(f, &r.Name)
			case 2:
				if f.Type != wire.Bytes || d.part() != nil {
					return false
				}
				r.ClientURLs = append(r.ClientURLs, string(f.B))
				return true
			}
			return false
		})
		return true
	})
	return errors.Join(err, bad)
}

func (d *Decoder) downgradeInfo(b []byte) error {
	r := new(DowngradeInfoSet)
	d.req.Downgrade = r
	return d.message("downgrade_info_set", b, func(f *field) bool {
		switch f.Num {
		case 1:
			return flag(f, &r.Enabled)
		case 2:
			return str(f, &r.Version)
		}
		return false
	})
}

func (d *Decoder) downgradeTest(b []byte) error {
	r := new(DowngradeVersionTest)
	d.req.DowngradeTest = r
	return d.message("downgrade_version_test", b, func(f *field) bool { return f.Num == 1 && str(f, &r.Version) })
}
