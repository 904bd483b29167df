"""Every size, count and memory limit that decides a path or a batch, once.

Read `limits.NAME` where the limit applies, or make it the default of a keyword argument that a test can set.

Not here: tolerances and numbers of steps, which belong to their algorithm; and tile sizes of compiled loops, which
stay in the file of the loop, because Numba's cache on disk notices a change of that file only.
A number takes 8 bytes unless the comment says otherwise.
"""

# ---- Examples: which algebra is used for how many

# "auto" answers by a Cholesky factor up to so many examples: evidence and variances are then exact, a variance takes a
# third of a millisecond, and the tables of a low rank two seconds to make. Fewer labels may be iterated all the same.
FACTOR_UP_TO = 2048
# Nanoseconds that predict which is quicker for labels, measured on an EPYC; their ratios matter. For a factor: of each
# number of one row that meets another row, and of n³ for factor and diagonal of the inverse ...
PAIR_NS, CUBE_NS = 0.45, 0.027
# ... and for conjugate gradients: of each number that a product reads, and of all that is done once.
PRODUCT_NS, ITERATED_NS = 2.0, 6e7
EXACT_IS_WORTH = 2.0  # A factor may take so many times as long, because its leave-one-out is exact.
# Columns of labels up to which an estimated leave-one-out will do: of 30 classes it found 50 % right where 47 % were.
ESTIMATED_COLUMNS = 10
FACTOR_NUMBERS = 8 * FACTOR_UP_TO**2  # Numbers in the factors of all classes, kept or made for one evidence: 268 MB.
DENSE_UP_TO = 30_000  # A kernel matrix may be held up to so many examples: 7 GB.
SVDD_DENSE_UP_TO = 10_000  # SVDD holds a dense kernel's matrix up to here: 0.8 GB. Beyond, it asks for columns.
LAPLACE_FACTOR_UP_TO = 300  # Laplace makes a factor per class and step. Beyond, conjugate gradients are quicker.
EP_FACTOR_UP_TO = 4096  # EP makes a factor per class and step, because only a factor gives exact variances ...
EP_FACTOR_NUMBERS = 2**28  # ... and up to so many numbers in these factors together: 2 GiB.
SOLVE_EACH_UP_TO = 200  # Each example has a solve of its own. Beyond, the diagonal of the inverse is estimated.
LOW_RANK_FLOAT32_FROM = 4096  # A low rank is found in float32: it saves more than its loops take to compile.
SORTED_COLUMNS_UP_TO = 2048  # Tuning sorts the columns of the codes: its products are then the quickest.
TUNE_SAMPLE_ABOVE = 4 * FACTOR_UP_TO  # Tuning begins on samples of the examples if there are more than so many ...
TUNE_SAMPLES = (256, 1024)  # ... which have so many: the last for a good start, the first in a tenth of its time.
GRID_POINTS = 10_000  # Combinations of a listed grid of parameters: at a second each, about three hours.
CHOICE_FROM = 20  # Fewer examples leave noise and "auto" kernel at their defaults: they tell no better one ...
NOISE_EXAMPLES = 1024  # ... and of more, a sample chooses the noise: four factors take a tenth of a second ...
KERNEL_EXAMPLES = 640  # ... and a smaller one the kernel, of which there are eighteen.
AUTO_KERNEL_UP_TO = 4096  # kernel="auto" compares kernels, whose matrix takes 134 MB. Beyond, it is HIK().
# BLAS has one thread up to so many rows: it then makes a factor in 40 ms, and a second thread would look for further
# work for 25 ms after each product, time that other processes and our own threads want.
ONE_BLAS_THREAD_UP_TO = 1536
WORKING_SET = 512  # SVDD makes its steps within so many examples, when K is known by products: 2 MB ...
SMO_STEPS_AT_ONCE = 20_000  # ... and looks at the caller after so many steps, who may want to interrupt.

# ---- Asking

POOL_DENSE_UP_TO = 4096  # Pool rows whose kernel matrix is held: 134 MB. Beyond, the pool is known by products.
POOL_EXACT_NUMBERS = 20_000_000  # Numbers of a pool whose codes are exact: 12 bytes each. 255 levels take one to three.
POOL_HELD_UP_TO = 10_000  # Pool rows up to which the matrix of a kernel without fast products is held: 0.8 GB.
OBSERVED_ONE_BY_ONE = 256  # Rows observed one after the other in closed form: more at once are quicker from the start.
OBSERVED_BY_ONE_THREAD = 16  # Rows observed with one thread of BLAS, whose products are then too small for two.
FIELD_NUMBERS = 200_000_000  # Pool rows times labels up to which the variance of a new pool is exact ...
FIELD_DIRECTIONS = 256  # ... and directions of the upper bound beyond.
SKETCH_GROUPS = (32, 512)  # Groups of targets whose covariances are added with random signs, least and most ...
SKETCH_NUMBERS = 12_800_000  # ... and pool rows times groups: 51 MB of float32 ...
SKETCH_FLOAT64_NUMBERS = 2_000_000  # ... which are float64 up to so many: 16 MB.
SKETCH_STEPS = 64  # Observed rows that are noted beside a sketch before it is written anew.
OBSERVED_FACTOR_UP_TO = 10_000  # Labels of a pool whose factor is held: 0.8 GB. Beyond, conjugate gradients solve.
FACTOR_BORDER = 256  # Rows that a Cholesky factor grows by before it is copied.
SHARPNESS_EXAMPLES = 512  # Labels that the sharpness behind a question is found from: a few milliseconds.
MEDOIDS_PER_CLASS = 8  # Labels of each known class up to which "auto" asks for medoids (docs/decisions/054) ...
MEDOIDS_MOST = 512  # ... and labels in all: a quarter of the rows among which they are looked for.
BATCH_CANDIDATES = 2048  # Candidates among which a batch is chosen jointly: each has a covariance with every label.
BATCH_JOINT = 2048  # Questions of a batch that are chosen jointly, of four times as many: 0.5 GB of covariances.
COVARIANCE_CANDIDATES = 16_384  # Candidates whose covariance with every target is held, drawn from more: 64 MB.
BELIEVED = 4096  # Pool rows whose probabilities say how accurate a model believes to be: an error of less than 0.01.
VALUE_CANDIDATES = (
    256  # Candidates whose value is found, drawn from more: half a second for ten classes and 512 targets.
)
TARGETS = 512  # Pool rows whose doubt a question is to lower, where each has a covariance with every candidate.

# ---- Examples that stand for all

# Training examples that new ones are compared with: enough to know a false-alarm rate of 5 % to half a percent. Each
# takes a column of K, or is kept as it came.
EXAMPLES_COMPARED = 2048
# A low-rank variance holds a quarter of the examples out from so many on: 40 tell a share of 5 %. Of fewer examples it
# is made again without each of them, which takes some 4 ms each.
HELD_OUT_FROM = 160
LEFT_OUT_TOGETHER = 64  # Fits that leaving out takes without a closed form: more examples go in so many groups.
NEIGHBOURS = (
    2048  # Rows without a label whose graph carries votes, drawn from more: 34 MB, and 2 s for HIK of 1,000 columns.
)
VOTING_LABELS = 1024  # Labels up to which such votes are counted: each is spread over the graph by itself, 17 MB.
EXAMPLES_HIDDEN = 800  # Training examples whose classes are hidden in turn, to weigh signs of unknown ones: 0.3 s.
MEAN_DISTANCE_EXAMPLES = 2048  # Examples whose mean distance GeneralizedRBF(beta="auto") takes, of all pairs.
# Examples whose kernel matrix tells the spectrum of K, roughly and well: its eigenvalues choose the preconditioner.
SPECTRUM_EXAMPLES = (256, 1024)
SAMPLE_ROWS = 65_536  # Rows that quantile levels are read from.
WEIGHTED_SCORES = 1 << 20  # Scores that weighted examples may become, when a weight of w means w equal scores: 8 MB.
FITTED_ENTRIES = 200_000  # Entries of a diagonal that the regression of its estimate looks at: memory and time.

# ---- Numbers held or read at a time

KERNEL_VALUES_AT_ONCE = 4_000_000  # Kernel values made at a time, where not all of them have to be held: 32 MB.
DIFFERENCES_AT_ONCE = KERNEL_VALUES_AT_ONCE  # Numbers in differences of rows made at a time: the same 32 MB.
SORTED_AT_ONCE = 4_000_000  # Entries of a dense matrix sorted at a time, where levels are chosen: 10 bytes each, 40 MB.
INDUCING_NUMBERS = 500_000_000  # Kernel values between all examples and the inducing ones that may be held: 4 GB.
PRECONDITIONER_NUMBERS = 50_000_000  # Numbers in its low rank: 200 MB; float64 up to a sixteenth of them.
ROUNDED_STEPS = 500_000  # Steps between levels from which on they are float32: half the reading of a product.
SINGLE_FROM = 500_000  # Numbers that a product reads from which on float32 is worth it, whatever the tolerance.
ONE_THREAD_UP_TO = 100_000  # Numbers in a vector that one thread is done with before a second has woken up.
PROBITS_SHARED_FROM = 16_384  # Values of the probit from which on threads share them: two milliseconds.
LOSSES_APART = 10_000  # Predictions from which on two losses of them are made side by side, by two threads.
NUMBERS_IN_CACHE = 32_768  # Numbers of a vector that NumPy works on at a time: 256 KiB stay in a core's cache.
NORMALS_AT_ONCE = 5_000_000  # Normal random numbers held at a time when functions are drawn from the posterior: 40 MB.
PROBE_WORK = 1e9  # Numbers that further probes of an inverse diagonal may read, in all: about half a second.
LEVERAGES = 1000  # Examples that tell the mean leverage of all in their regression.
SOLVED_AT_ONCE = 64  # Systems solved together for these probes: the matrix is read once for all of them.
COMPILED_SQUARES_FROM = 100_000  # Kernel values from which on a compiled loop, once compiled, is quicker than NumPy.

# ---- Codes and levels

MAX_LEVELS = 255  # Levels above zero of a dimension in codes: one byte tells no more apart.
BLOCK_ROWS = 16_384  # Rows of a block of codes: eight float32 columns of V for so many rows fill half of a 1 MiB cache.
# The same where zeros are not kept: V is read here and there, and one float32 column of so many rows fills half of a
# 32 KiB cache. With fewer rows the histograms of several columns would travel more often than they are worth ...
SPARSE_BLOCK_ROWS = 4096
COLUMN_ENTRIES = 200  # ... but more rows where fewer than so many entries of a dimension would be in a block.
LANE_BYTES = 32  # Bytes of a row of V in a pass over many sparse blocks: wider histograms leave the cache.
SORTED_LANE_BYTES = 64  # The same for sorted columns: one line of the cache.
FEW_ENTRIES = 65_536  # Values of new rows up to which a table is read row by row, and not by dimension ...
PREDICTED_ROWS = 8192  # ... beyond, so many new rows go by dimension together ...
SQUARED_ROWS = 4096  # ... and where many columns of tables are, of which 64 numbers a row stay in the cache.
PREDICTED_ENTRIES = 2_000_000  # Values of them, about: the C library keeps memory for the next call up to 32 MB.
SEARCHED_ENTRIES = 131_072  # Values that search their places at a time, of the latter: 2 MB, near the second cache.
PANEL_DIMS = 1024  # Dimensions of a panel of rows, for blocks of the kernel matrix: 256 KiB stay in the cache.
TABLE_NODES = 128  # Nodes of a dimension in the tables of a variance: 64 columns fill a first cache (32 KiB) ...
# ... and of all dimensions together, where there are few: of three, a coarse table is a third of the answer.
TABLE_NODES_TOGETHER = 32_768

# ---- Rows and columns worked on at a time

ROWS_AT_ONCE = 16_384  # Rows of X of which float64 copies or predictions are made at a time.
PICTURE_ROWS_AT_ONCE = 512  # Rows of picture vectors predicted at a time: a wide vector has some thousand non-zeros.
SHARES_AT_ONCE = 32_768  # Values whose shares of a decision are read off tables: those of ten classes fill 2.6 MB.
NEW_AT_ONCE = 512  # New examples whose columns of K are made and half solved at a time: they stay in the cache ...
NEW_AT_LEAST = 16  # ... and at least so many, however many training examples: one by one takes far longer.
MIRRORED_ROWS = 512  # Rows of a square matrix mirrored at a time: a block of 2 MiB stays in the cache.
PRECONDITIONER_ROWS = 8192  # Rows of a preconditioner made at a time.
UNIT_COLUMNS = 64  # Unit vectors in one product, where columns of K are made from products.
CHI2_COLUMNS = 256  # Columns of a sparse matrix made dense at a time for the χ² distance.
KEYS_AT_ONCE = 1 << 21  # Random keys drawn at a time by each thread for made-up histograms: 8 MB of float32.

# ---- Pictures and descriptors

PICTURE_PIXELS = 100_000_000  # Pixels of a picture; a larger one is refused by its header. As RGB it takes 300 MB.
SOURCE_PIXELS = 8_000_000  # Pixels that a source of a huge picture reads at a time for a coarse copy: 24 MB of RGB.
TILES = 20_000  # Tiles of a search: what covariances with 1,000 looks need takes 160 MB under each of three settings.
TILE_EXAMPLES = 200  # Examples of hits of such a search: each one is as another look.
BOX_COORDINATE = 1e15  # Coordinates of a box: float64 tells quarters of a pixel apart, and areas stay finite.
GRID_LINES = 100_000  # Grid lines along a side of a picture on which `best_window` lets windows begin and end.
WHOLE_NUMBER = 2**53  # in a state: beyond, float64 does not have every whole number
SMALL_FILE_BYTES = 1 << 18  # Bytes of a file whose digest takes less time than to hand it to another thread.
KEPT_GRID_POINTS = 20_000  # Points of a grid of patches above which it is not kept for the next picture ...
KEPT_GRIDS = 64  # ... and grids that are kept: pictures of a collection often share a few shapes.
# Descriptors of a picture that a sample has at least: one more picture costs far more than some more descriptors.
DESCRIPTORS_PER_PICTURE = 100
DESCRIPTORS_AT_ONCE = 512  # Descriptors compared with all words at a time.
KMEANS_BATCH = 4096  # Descriptors per step of k-means, or twice the number of words where that is more.
KMEANS_SEEDING = 2000  # Descriptors that the first centres of k-means are chosen from, or three per word.
RANGE_DESCRIPTORS = 20_000  # Descriptors that tell their range: points beyond belong to the outermost cells.
PENDING_CELLS = 4_000_000  # Cells that wait to be merged with the known ones: 32 MB.
PYRAMID_DEPTH = 10  # Depth of a spatial pyramid: the finest grid of ten has 262,144 cells.
GRADIENT_DEPTH = 9  # Depth of a pyramid of gradient histograms: the finest grid of nine has 65,536 cells.
MATCH_DEPTH = 24  # Depth of a pyramid match: cells halve with every level, and float32 descriptors have 24 bits.
VECTOR_COLUMNS = 2**31 - 1  # Columns of a vector: sparse matrices number them with 32 bits.
WIDE_VECTOR = 5000  # Columns of a vector above which the recipes take few levels.
RECIPE_TABLE_NUMBERS = 8_000_000  # Numbers that the recipes let the tables of a variance hold: 32 MB of float32.

# ---- Files and pages

HEADER_BYTES = 1 << 25  # Bytes of a model file's JSON header: names, labels and weights of each feature.
FILE_BYTES = 1 << 34  # Bytes of a model file: 16 GiB.
FILE_BYTES_AT_ONCE = 1 << 20  # Bytes of a model file read at a time for its digest.
LABEL_BYTES = 1 << 26  # Bytes of all labels of a model file together.
STATE_BYTES = 1 << 28  # Bytes of the JSON file of a search: a million looks or features of tiles take some 20 MB.
KNOWN_EXAMPLES = 1 << 53  # Known examples that a model file may say it has seen: float64 counts no further.
# Rows or features of a sparse matrix in a file, however short; beyond, each needs a byte of the file. Training on so
# many features takes up to 400 MB.
SPARSE_SIDE = 1 << 20
UNPACKED_BYTES = 1 << 29  # Bytes that a compressed table may unpack to, however short it is: 0.5 GiB ...
UNPACKED_TIMES = 100  # ... and times its own bytes, where that is more. Tables pack to a tenth, zeros to a thousandth.
KERNEL_SUM_DEPTH = 16  # Sums of kernels within sums that a model file may have; `+` makes one sum of all.
TABLE_BINS = 65_536  # Bins per feature of quantised tables: they take features × bins × outputs numbers of 4 bytes.
CSV_LINE = 1 << 20  # Characters of the first line of a CSV file that are searched for its delimiter.
TABLE_ROWS_AT_ONCE = 4096  # Rows of a table read or checked at a time.
PICTURES_COMPARED = 20_000  # Pictures that are compared with each other for duplicates: 4·10⁸ pairs, some seconds.
COMPARED_AT_ONCE = 1024  # Pictures that are compared with all others at once: 80 MB of correlations.
CELL_PICTURES = 24  # Pictures that were recognised, shown for each class of a report.
NEAREST_SHOWN = 3  # Known pictures shown beside a novel one, ...
NEAREST_FOR = 60  # ... for so many of the novel ones, ...
NEAREST_AMONG = 20_000  # ... out of so many known ones at most.
SHEET_PICTURES = 600  # Pictures on a contact sheet: a browser still scrolls through them with ease.
REPORT_FIRST = 300  # Examples of each verdict in a novelty report, from its novel end ...
REPORT_LAST = 100  # ... and from its normal end, where there are more.

# ---- Finding

HYPOTHESES = 1500  # Hypotheses about where an object is, drawn for the first round of every belief ...
HYPOTHESES_PRODUCTS = 40_000_000  # ... and looks² times hypotheses: with more looks there are fewer, but at least ...
HYPOTHESES_LEAST = 150  # ... so many.
LOOKS_TO_MIX = 400  # Looks under all noises and clutters; of more looks, so many say which one serves them all.
HYPOTHESES_TO_COMPARE = 200  # Hypotheses behind the expected score of a box.
CANDIDATES_TO_ANSWER = 100  # Hypotheses that may be the answer; they are compared with all.
HYPOTHESES_FOR_MAPS = 64  # Hypotheses behind a map of the whole picture.
# Hypotheses under which candidates are scored. They are candidates too, with so many from the prior: 60,000 numbers.
HYPOTHESES_TO_CHOOSE = 200
CANDIDATES_OF_PRIOR = 100
SCORE = 1e100  # Size of a score, in units of the range of scores too: sums of squares of them stay finite.
HITS = 1e15  # Hits in a tile: float64 counts no further.
LOOKS = 10_000  # Looks of a search: their covariances take 0.8 GB.
MAP_CELLS = 2**22  # Cells of a map of a picture in a file: 32 MB.
PROPOSALS_TO_CHOOSE = 2000  # Proposals for a batch, of more those that overlap the hypotheses most: 3 MB of scores.
BOXES_AT_ONCE = 8192  # Boxes whose mean and variance are found at once: 10 MB for each hundred hypotheses.
REPORT_SEARCHES = 100  # Pictures whose search a report shows step by step, some 100 kB each.
REPORT_SIDE = 480  # Longer side of these pictures, in pixels, and centres along the longer side of a map.
REPORT_CENTRES = 40
CROP_PIXELS = 2**20  # Pixels of a crop that a judge is given, 3 bytes each: what has more is read less finely.
NOTE_BYTES = 1 << 22  # Of one XML or text file of boxes: those of a picture with ten thousand.
