//nolint:gosec // conversions: lengths are checked first, and two's complement is what the format means
package wire

import (
	"math"
	"math/bits"
)

// memPerByte and memFree bound what decoding one value allocates: memPerByte × its length + memFree. The free part is
// there four times over in 64 KiB, so a message of a few arguments stays within 64 × its length + 64 KiB.
const (
	memPerByte = 64
	memFree    = 16 << 10
	memLibrary = 128 // what a call of the library and the note of where its value ends cost
)

// memLimit is what decoding n bytes of one value may allocate.
func memLimit(n int) int { return memPerByte*n + memFree }

// memSize is no less than what the allocator takes for n bytes. Its size classes are 8 to 32 bytes apart at first; from
// there they waste up to a fifth.
func memSize(n int) int {
	switch {
	case n <= 32:
		return (n + 7) &^ 7
	case n <= 256:
		return (n + 15) &^ 15
	case n <= 512:
		return (n + 31) &^ 31
	case n > math.MaxInt/2:
		return n
	}
	return n + n/4
}

// memArray is memSize for n elements in a row.
func memArray(n, size int) int {
	if hi, lo := bits.Mul64(uint64(n), uint64(size)); hi == 0 && lo < math.MaxInt {
		return memSize(int(lo))
	}
	return math.MaxInt
}

// memMap is no less than what the runtime takes for a map made for n pairs: a header, and groups of eight slots, filled
// to seven eighths at most. Large maps consist of several tables of up to 1,024 slots, among which chance divides the
// pairs; one that gets too many is replaced by one twice as large, or by two.
func memMap(n, key, elem int) int {
	const (
		header   = 48
		inline   = 128 // larger keys and elements are allocated by themselves
		perTable = 1024
		chance   = 180 // pairs that one table may get beyond the average: six deviations
	)
	if n == 0 {
		return header
	}
	apart := 0
	if key > inline {
		apart, key = apart+memSize(key), 8
	}
	if elem > inline {
		apart, elem = apart+memSize(elem), 8
	}
	group := 8 + 8*((key+7)&^7+(elem+7)&^7)
	if n <= 8 {
		return header + memSize(group) + memArray(n, apart)
	}
	slots := n * 8 / 7
	tables := powerOfTwo((slots + perTable - 1) / perTable)
	slots = powerOfTwo(slots / tables)
	mem := tables * (memArray(slots/8, group) + 64)
	if tables > 1 && n/tables > slots/8*7-chance {
		mem *= 3
	}
	return header + mem + memArray(n, apart)
}

// powerOfTwo returns the lowest power of two that is not below n, which is positive.
func powerOfTwo(n int) int { return 1 << bits.Len(uint(n-1)) }
