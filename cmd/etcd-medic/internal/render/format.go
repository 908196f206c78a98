package render

import (
	"fmt"
	"strconv"

	"github.com/etcd-medic/etcd-medic/compare/check"
)

func pad(s string, n int) string { return fmt.Sprintf("%-*s", n, s) }

func termIndex(term, index uint64) string {
	if term == 0 && index > 0 {
		return strconv.FormatUint(index, 10)
	}
	return fmt.Sprintf("%d/%d", term, index)
}

func revision(r *check.Rev) string { return fmt.Sprintf("%d.%d", r.Main, r.Sub) }

func quoted(b check.Bytes) string { return strconv.Quote(string(b)) }

func hexID(id uint64) string {
	if id == 0 {
		return "-"
	}
	return strconv.FormatUint(id, 16)
}

func orDash(s *string) string {
	if s == nil || *s == "" {
		return "-"
	}
	return *s
}

func num0(n uint64) string {
	if n == 0 {
		return "-"
	}
	return strconv.FormatUint(n, 10)
}

func ptr[T int64 | uint64](n *T) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

// compactText shows -1, never compacted, as a dash.
func compactText(n *int64) string {
	if n == nil || *n < 0 {
		return "-"
	}
	return strconv.FormatInt(*n, 10)
}
