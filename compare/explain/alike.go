package explain

import "strings"

// Alike returns the codes that differ from ask by the fewest letters, at most three; none if they differ by many.
func Alike(ask string, codes []string) []string {
	ask = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(ask)), "_", "-")
	if len(ask) < 3 || len(ask) > 64 {
		return nil
	}
	least := max(1, len(ask)/6)
	var out []string
	for _, c := range codes {
		d := Distance(ask, strings.ToLower(c))
		if d < least {
			least, out = d, nil
		}
		if d == least {
			out = append(out, c)
		}
	}
	return out[:min(len(out), 3)]
}

// Distance returns the number of letters to add, remove, replace or swap with the next, to get from a to b.
func Distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(row[j-1]+1, last[j]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
