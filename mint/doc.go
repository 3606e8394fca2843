// Package mint makes new names: dates that are never given twice (the temporal
// distributor of the IBI report, which also serves PILIN), and NOID's templates
// and check characters.
//
// It is pure. It keeps nothing, waits for nothing and asks no clock: state and
// time go in, a name and the next state come out. That the state is durable
// before a name leaves the process is its caller's duty.
package mint
