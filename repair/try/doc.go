// Package try makes what a plan promises: mended data dirs and rebuilt databases. While the plan is made, they are made
// in scratch, inspected and removed; package run makes them again.
package try
