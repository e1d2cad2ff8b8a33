# %% [markdown]
# # Shared tables in a notebook
# Run it cell by cell, or as a script with the profile and a share as arguments.

# %%
import sys

from lakepass.reader import SharingClient
from lakepass.spark_conf import create_views, lakepass_session, read_table

profile, share = sys.argv[1:3]
spark = lakepass_session(app="notebook", master="local[2]", jars="none")

# %% [markdown]
# Every table of the share becomes a view. Nothing is copied: a query reads the provider's files.

# %%
views = create_views(spark, profile, share, engine="native")
print("views:", ", ".join(views))

# %%
spark.sql(f"SELECT count(*) AS n FROM `{views[0]}`").show()

# %% [markdown]
# A table at an earlier version, with only the columns that are needed:

# %%
table = SharingClient(profile).all_tables(share)[0]
early = read_table(spark, f"{profile}#{table}", version=1, engine="native")
early.printSchema()

# %%
spark.stop()
