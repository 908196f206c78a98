// Package try makes what a plan promises: mended data dirs and rebuilt databases. While the plan is made they are made
// in scratch, looked at and removed; run makes them again.
package try
