// Package plural puts a number before the right form of a word, several names into one sentence, and sizes into units.
package plural

import (
	"fmt"
	"math"
	"strings"
)

// Of is "1 key", or "3 keys".
func Of[N int | int64 | uint64](n N, one, many string) string {
	return fmt.Sprintf("%d %s", n, Form(n, one, many))
}

// Span is "entry 5", or "entries 5..7".
func Span[N int | int64 | uint64](first, last N, one, many string) string {
	if first == last {
		return fmt.Sprintf("%s %d", one, first)
	}
	return fmt.Sprintf("%s %d..%d", many, first, last)
}

// Form is the form of a word without its number.
func Form[N int | int64 | uint64](n N, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// List is "a", "a and b", or "a, b and c".
func List(names []string) string { return Some(names, len(names)) }

// Some is the List of up to most names; of more it has the first ones: "a, b and 12 more".
func Some(names []string, most int) string {
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	if n := len(names) - 1; n > 0 {
		return strings.Join(names[:n], ", ") + " and " + names[n]
	}
	return strings.Join(names, "")
}

// Size is a number of bytes in units of 1024: "512 B", "1.5 MiB".
func Size[N int | int64 | uint64](n N) string {
	return size(float64(n), func(f float64) float64 { return f })
}

// SizeUp is Size rounded up, for room that is needed: what it says is enough.
func SizeUp[N int | int64 | uint64](n N) string { return size(float64(n), math.Ceil) }

func size(f float64, round func(float64) float64) string {
	unit := 0
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	for f >= 1024 && unit < len(units)-1 {
		f, unit = f/1024, unit+1
	}
	if unit == 0 || f >= 100 {
		return fmt.Sprintf("%.0f %s", round(f), units[unit])
	}
	return fmt.Sprintf("%.1f %s", round(f*10)/10, units[unit])
}

// SizeOf is a part of a number of bytes: "20.0 KiB of 24.0 KiB". Where that would hide the difference it has the bytes.
func SizeOf[N int | int64 | uint64](part, whole N) string {
	if a, b := Size(part), Size(whole); a != b || part == whole {
		return a + " of " + b
	}
	return fmt.Sprintf("%d of %d bytes", part, whole)
}
