from pathlib import Path
from sklearn.datasets import get_data_home


def grid_folder(data_home=None):
    return Path(get_data_home(data_home)) / "skdisent_sprite_posteriors"
