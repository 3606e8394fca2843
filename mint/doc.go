// Package mint makes new names: dates that are never given twice (the temporal
// distributor of the IBI report, which also serves PILIN), and NOID's templates
// and check characters.
//
// It is pure. It keeps no state, does not wait and reads no clock: state and
// time go in, a name and the next state come out. The caller makes the state durable
// before a name leaves the process.
package mint
