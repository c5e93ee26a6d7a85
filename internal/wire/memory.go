//nolint:gosec // conversions: lengths are checked first, and two's complement is what the format means
package wire

import (
	"math"
	"math/bits"
)

// memPerByte and memFree bound what decoding one value allocates: memPerByte × its length + memFree. memFree is a
// quarter of 64 KiB, so a message of a few arguments stays within 64 × its length + 64 KiB.
const (
	memPerByte = 64
	memFree    = 16 << 10
	memLibrary = 128 // cost of a call of the library, and of the note where its value ends
)

// memLimit returns the most bytes that decoding a value of n bytes may allocate.
func memLimit(n int) int { return memPerByte*n + memFree }

// memSize returns at least the bytes that the allocator takes for an object of n bytes. The allocator's size classes
// are 8 to 32 bytes apart up to 512 bytes; above that they waste up to a fifth.
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

// memArray is memSize for an array of n elements.
func memArray(n, size int) int {
	if hi, lo := bits.Mul64(uint64(n), uint64(size)); hi == 0 && lo < math.MaxInt {
		return memSize(int(lo))
	}
	return math.MaxInt
}

// memMap returns at least the bytes that the runtime takes for a map made for n pairs: a header, and groups of eight
// slots, of which the runtime fills at most seven eighths. Large maps consist of several tables of up to 1,024 slots,
// and the hash distributes the pairs among them. The runtime replaces a table that gets too many pairs by one twice as
// large, or by two.
func memMap(n, key, elem int) int {
	const (
		header   = 48
		inline   = 128 // the runtime allocates larger keys and elements separately
		perTable = 1024
		chance   = 180 // pairs that one table may get beyond the average: six standard deviations
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

// powerOfTwo returns the lowest power of two that is at least n, which must be positive.
func powerOfTwo(n int) int { return 1 << bits.Len(uint(n-1)) }
