//go:build bench

package main_test

import (
	"fmt"
	"strings"
)

const (
	plotWidth, plotHeight, plotMargin = 640, 320, 48
)

// drawGrowth draws time over entries, and the straight line that the largest size gives.
func drawGrowth(points []point) string {
	last := points[len(points)-1]
	x := func(entries int) float64 {
		return plotMargin + float64(entries)/float64(last.entries)*(plotWidth-2*plotMargin)
	}
	top := last.runs.took().Seconds()
	for _, p := range points {
		top = max(top, p.runs.took().Seconds())
	}
	y := func(seconds float64) float64 {
		return plotHeight - plotMargin - seconds/top*(plotHeight-2*plotMargin)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`,
		plotWidth, plotHeight)
	b.WriteString("\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n")
	fmt.Fprintf(&b, `<path d="M%d %dV%dH%d" fill="none" stroke="#667"/>`+"\n", plotMargin, plotMargin,
		plotHeight-plotMargin, plotWidth-plotMargin)
	fmt.Fprintf(&b, `<path d="M%.1f %.1fL%.1f %.1f" stroke="#99a" stroke-dasharray="4 4"/>`+"\n", x(0), y(0),
		x(last.entries), y(last.runs.took().Seconds()))
	var line []string
	for _, p := range points {
		s := p.runs.took().Seconds()
		line = append(line, fmt.Sprintf("%.1f,%.1f", x(p.entries), y(s)))
		fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="3" fill="#1a5fb4"/>`+"\n", x(p.entries), y(s))
		fmt.Fprintf(&b, `<text x="%.1f" y="%.1f" text-anchor="middle">%.1f s</text>`+"\n", x(p.entries), y(s)-8, s)
		fmt.Fprintf(&b, `<text x="%.1f" y="%d" text-anchor="middle">%d</text>`+"\n", x(p.entries),
			plotHeight-plotMargin+16, p.entries)
	}
	fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="#1a5fb4" stroke-width="2"/>`+"\n",
		strings.Join(line, " "))
	fmt.Fprintf(&b, `<text x="%d" y="%d">diagnose of three members: seconds by entries; dashed: linear</text>`+"\n",
		plotMargin, plotMargin-16)
	b.WriteString("</svg>\n")
	return b.String()
}
